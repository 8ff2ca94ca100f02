import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import { publishOperational } from "../../../src/app/operational/publish-operational.ts";
import { createPublishConfigCache } from "../../../src/app/publish/publish-config.ts";
import { createWatchState, tick } from "../../../src/app/watch/tick.ts";
import { relaySourceId } from "../../../src/core/relay-source.ts";
import { createApi, operatorToken } from "../support/api.ts";
import { createWatchdog, EVERYTHING } from "../support/watch.ts";
import { claim, createToldScene, die, quietOutbox, record, report, type ToldScene } from "./support.ts";

const operator = createApi(operatorToken);

beforeEach(() => {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok"));
});
afterEach(() => vi.restoreAllMocks());

const typesOf = (told: { type: string }[]) => told.map(({ type }) => type.replace("hooklane.", ""));

test("what is noted becomes events like any other, in the order it happened, for who asks for it and nobody else", async () => {
  const scene = await createToldScene("hooklane.*");
  const { tenant, endpointId, listenerId } = scene;
  const dead = await die(scene, 410);
  expect(await scene.publishNotes()).toBe(false);
  const told = await scene.told();
  const { terminal_at } = await dead.read();
  expect(told).toMatchObject([
    {
      type: "hooklane.delivery.dead_letter",
      source_id: relaySourceId(tenant.id),
      schema_version: 1,
      ordering_key: null,
      cause_event_id: null,
      idempotency_key: `dead_letter:${dead.id}`,
      occurred_at: terminal_at,
      content_type: "application/json",
      delivery_count: 1,
      payload: {
        delivery_id: dead.id,
        event_id: dead.ref.eventId,
        event_type: "order.created",
        endpoint_id: endpointId,
        subscription_id: expect.stringMatching(/^sub_/),
        final_outcome: "gone",
        attempt_count: 1,
        last_status_code: 410,
        last_error_class: "gone",
        dead_at: terminal_at,
      },
    },
    {
      type: "hooklane.endpoint.disabled",
      payload: { endpoint_id: endpointId, reason: "gone", disabled_at: terminal_at },
    },
  ]);
  for (const { deliveries } of told) expect(deliveries).toMatchObject([{ endpoint_id: listenerId, status: "pending" }]);
  expect(await scene.notes()).toEqual([]);
  expect((await tenant.api.get("/v1/sources")).body.data).toMatchObject([{ name: "orders" }]);
  expect((await tenant.api.get(`/v1/sources/${relaySourceId(tenant.id)}`)).status).toBe(404);
});

test("consumers see the relay's name as their source, and a first hop", async () => {
  const scene = await createToldScene("hooklane.endpoint.*");
  await die(scene, 410);
  await scene.publishNotes();
  const [{ deliveries }] = await scene.told();
  const ref = { tenantId: scene.tenant.id, ...refOf(deliveries[0].id) };
  const loaded = await scene.deps.loadDeliveries([ref]);
  expect(loaded.deliveries).toMatchObject([{ event: { sourceName: "hooklane", hopCount: 0 } }]);
});

const refOf = (id: string) => ({ eventId: `evt_${id.slice(4, 30)}`, endpointId: `ep_${id.slice(30)}`, replayNo: 0 });

/** Dead letters of events that came through as many relays. */
async function dieAfterHops(scene: ToldScene, hops: number[]): Promise<void> {
  for (const hop of hops) {
    const delivery = await scene.publishOne();
    await claim(scene, delivery);
    await scene.db.prepare("update event set hop_count = ? where id = ?").bind(hop, delivery.ref.eventId).run();
    await record(scene, report(delivery, 400));
  }
}

test("what tells of an event that came through relays has come through as many", async () => {
  const scene = await createToldScene("hooklane.*");
  await dieAfterHops(scene, [0, 3, 3, 1]);
  while (await scene.publishNotes());
  const { results } = await scene.db
    .prepare("select hop_count from event where tenant_id = ? and type like 'hooklane.%' order by id")
    .bind(scene.tenant.id)
    .all<{ hop_count: number }>();
  expect(results.map(({ hop_count }) => hop_count)).toEqual([0, 3, 3, 1]);
});

test("a listener that is disabled itself has its delivery born failed, on record for a replay", async () => {
  const scene = await createToldScene("hooklane.*");
  await scene.tenant.api.post(`/v1/endpoints/${scene.listenerId}/disable`);
  await vi.waitUntil(async () => (await scene.notes()).length === 0);
  const told = await scene.told();
  expect(typesOf(told)).toEqual(["endpoint.disabled"]);
  expect(told[0].payload).toMatchObject({ endpoint_id: scene.listenerId, reason: "operator" });
  expect(told[0].deliveries).toMatchObject([{ status: "failed", final_outcome: "endpoint_disabled" }]);
});

test("who died before the notes were taken away, or is at it twice at once, tells of nothing twice", async () => {
  const scene = await createToldScene("hooklane.*");
  await die(scene, 410);
  const died = async () => {
    throw new Error("died");
  };
  await expect(scene.publishNotes({ deleteRaised: died })).rejects.toThrow("died");
  expect(await scene.notes()).toHaveLength(2);
  await Promise.all([scene.publishNotes(), scene.publishNotes()]);
  expect(await scene.notes()).toEqual([]);
  const told = await scene.told();
  expect(typesOf(told)).toEqual(["delivery.dead_letter", "endpoint.disabled"]);
  expect(told.flatMap(({ deliveries }) => deliveries)).toHaveLength(2);
});

const away = async () => {
  throw new Error("away");
};

test("while the payload store or the ledger is away the notes wait, and what is told comes once, after it", async () => {
  const scene = await createToldScene("hooklane.*");
  const { commitPublish, listRaised } = quietOutbox(scene);
  await die(scene);
  await expect(scene.publishNotes({ putPayloads: away })).rejects.toThrow();
  await expect(scene.publishNotes({ listRaised: away })).rejects.toThrow();
  await expect(scene.publishNotes({ commitPublish: away })).rejects.toThrow();
  expect(await scene.told()).toEqual([]);
  // The commit takes effect and its answer is lost, each time it is tried.
  const lost: typeof commitPublish = async (...input) => {
    await commitPublish(...input);
    throw new Error("Network connection lost.");
  };
  await expect(scene.publishNotes({ commitPublish: lost })).rejects.toThrow();
  // It is read, published and taken away by somebody else before this one comes to its commit.
  const slow: typeof listRaised = async (...input) => {
    const raised = await listRaised(...input);
    await scene.publishNotes();
    return raised;
  };
  await scene.publishNotes({ listRaised: slow });
  const told = await scene.told();
  expect(typesOf(told)).toEqual(["delivery.dead_letter"]);
  expect(told[0].deliveries).toHaveLength(1);
  expect(await scene.notes()).toEqual([]);
});

test("a suspended tenant is told once it is active again", async () => {
  const scene = await createToldScene("hooklane.*");
  await die(scene);
  await operator.patch(`/v1/tenants/${scene.tenant.id}`, { status: "suspended" });
  expect(await scene.publishNotes()).toBe(false);
  expect(await scene.notes()).toHaveLength(1);
  await operator.patch(`/v1/tenants/${scene.tenant.id}`, { status: "active" });
  await scene.publishNotes();
  expect(typesOf(await scene.told())).toEqual(["delivery.dead_letter"]);
});

test("of a deleted tenant nothing is told, and nothing stays", async () => {
  const scene = await createToldScene("hooklane.*");
  await die(scene);
  await operator.delete(`/v1/tenants/${scene.tenant.id}`);
  await scene.publishNotes();
  expect(await scene.notes()).toEqual([]);
  const count = "select count(*) as n from event where tenant_id = ? and type like 'hooklane.%'";
  expect(await scene.db.prepare(count).bind(scene.tenant.id).first()).toEqual({ n: 0 });
});

test("what has waited past its retention is not told any more", async () => {
  const scene = await createToldScene("hooklane.*");
  await die(scene);
  const outbox = quietOutbox(scene);
  const later = Date.now() + (outbox.retentionDays + 1) * 86_400_000;
  expect(await publishOperational({ ...outbox, now: () => later }, scene.tenant.id)).toBe(false);
  expect(await scene.notes()).toEqual([]);
  expect(await scene.told()).toEqual([]);
});

test("many notes are told in order, a hundred at once", async () => {
  const scene = await createToldScene("hooklane.*");
  await scene.db
    .prepare(
      `with recursive n(i) as (select 0 union all select i + 1 from n where i < 119)
       insert into operational_event select ?1, ?2 + i / 3, printf('disabled:x:%03d', i), 'hooklane.endpoint.disabled',
         json_object('endpoint_id', 'ep_' || i, 'reason', 'operator') from n`,
    )
    .bind(scene.tenant.id, Date.now() - 1_000)
    .run();
  expect(await scene.publishNotes()).toBe(true);
  expect(await scene.notes()).toHaveLength(20);
  expect(await scene.publishNotes()).toBe(false);
  const { results } = await scene.db
    .prepare("select idempotency_key as k from event where tenant_id = ? and type like 'hooklane.%' order by id")
    .bind(scene.tenant.id)
    .all<{ k: string }>();
  expect(results.map(({ k }) => k)).toEqual(results.map(({ k }) => k).toSorted());
  expect(results).toHaveLength(120);
});

test("for a crowd of listeners fewer are told of at once", async () => {
  const scene = await createToldScene("hooklane.*");
  await scene.db
    .prepare(
      `with recursive n(i) as (select 0 union all select i + 1 from n where i < 4)
       insert into operational_event select ?1, ?2 + i, 'disabled:x:' || i, 'hooklane.endpoint.disabled',
         json_object('endpoint_id', 'ep_' || i, 'reason', 'operator') from n`,
    )
    .bind(scene.tenant.id, Date.now() - 1_000)
    .run();
  const { loadPublishConfig } = quietOutbox(scene);
  const deps = {
    publishConfigs: createPublishConfigCache(),
    // As many endpoints that three events for each of them are more deliveries than one request may make.
    loadPublishConfig: async (ref: Parameters<typeof loadPublishConfig>[0]) => {
      const rows = (await loadPublishConfig(ref))!;
      const listener = rows.subscriptions.find(({ eventTypePattern }) => eventTypePattern === "hooklane.*")!;
      const crowd = Array.from({ length: 9_000 }, (_, i) => ({
        ...listener,
        endpointId: `${listener.endpointId}${i}`,
      }));
      return { ...rows, subscriptions: [listener, ...crowd] };
    },
  };
  for (const left of [3, 2, 0]) {
    expect(await scene.publishNotes(deps)).toBe(left > 0);
    expect(await scene.notes()).toHaveLength(left);
  }
  expect(typesOf(await scene.told())).toHaveLength(5);
});

test("whoever closes the attempt has it told at once, without a watchdog", async () => {
  const scene = await createToldScene("hooklane.*");
  const delivery = await scene.publishOne();
  await claim(scene, delivery);
  await recordAttempt(scene.deps, report(delivery, 410));
  await scene.context.settled();
  expect(typesOf(await scene.told())).toEqual(["delivery.dead_letter", "endpoint.disabled"]);
  expect(await scene.notes()).toEqual([]);
});

test("what its closer did not tell the watchdog tells", async () => {
  const scene = await createToldScene("hooklane.*");
  const { real, idle } = createWatchdog(scene);
  await die(scene);
  const deps = {
    ...idle,
    findNextDue: async () => ({ nextDueAt: null, oldestDueAt: null }),
    listRaisedTenants: async (after: string) =>
      (await real.listRaisedTenants(after, EVERYTHING)).filter((id) => id === scene.tenant.id),
  };
  expect(await tick(deps, createWatchState(Date.now()))).toBeNull();
  expect(typesOf(await scene.told())).toEqual(["delivery.dead_letter"]);
  expect(await scene.notes()).toEqual([]);
});
