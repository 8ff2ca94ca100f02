import { expect, test } from "vitest";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createCloseLedger } from "../../../src/storage/ledger/close.ts";
import { createLaneLedger } from "../../../src/storage/ledger/lane.ts";
import { createLaneFixture } from "../lane/support.ts";
import { createScene, type Scene, type SceneDelivery } from "../support/scene.ts";
import { claim, createToldScene, die, record, report, tell } from "./support.ts";

const typesOf = (notes: { type: string }[]) => notes.map(({ type }) => type.replace("hooklane.", ""));

test("a rejected delivery is noted with how it died, in the batch that ends it; its answer is not", async () => {
  const scene = await createToldScene("hooklane.delivery.dead_letter");
  const { id, ref } = await die(scene);
  const notes = await scene.notes();
  expect(notes).toEqual([
    {
      id: `dead_letter:${id}`,
      type: "hooklane.delivery.dead_letter",
      facts: {
        event_id: ref.eventId,
        event_type: "order.created",
        hop_count: 0,
        endpoint_id: ref.endpointId,
        replay_no: 0,
        subscription_id: expect.stringMatching(/^sub_/),
        final_outcome: "rejected",
        attempt_count: 1,
        last_status_code: 400,
        last_error_class: "http_4xx",
      },
    },
  ]);
});

test.each([
  [{ max_attempts: 1 }, 503, "exhausted"],
  [{ same_error_limit: 1 }, 404, "same_error"],
  [{}, 410, "gone"],
])("by a policy of %j a %i is a dead letter that is noted as %s", async (policy, status, finalOutcome) => {
  const scene = await createToldScene("hooklane.delivery.*");
  const delivery = await scene.publishOne();
  await claim(scene, delivery);
  const base = report(delivery, status);
  await record(scene, { ...base, policy: { ...base.policy, ...policy } });
  expect((await scene.notes()).map(({ facts }) => facts)).toMatchObject([{ final_outcome: finalOutcome }]);
});

test("a delivery whose workers die again and again is noted as abandoned", async () => {
  const scene = await createToldScene("hooklane.*");
  const delivery = await scene.publishOne();
  await claim(scene, delivery);
  const { closeAttempts } = createCloseLedger(scene.db);
  const { policy: _, wire: __, ...rest } = report(delivery, 0);
  const attempt = { ...rest, latencyMs: null, statusCode: null, outcomeClass: "unreachable", errorClass: "abandoned" };
  const move = { status: "dead_letter" as const, finalOutcome: "abandoned" };
  await closeAttempts([{ ...rest, attempt, delivery: move, disable: null, clock: null }]);
  expect((await scene.notes()).map(({ facts }) => facts)).toMatchObject([
    { final_outcome: "abandoned", last_status_code: null, last_error_class: "abandoned" },
  ]);
});

test("a head that held its lane for too long is noted by what its last attempt said; another end of it is not", async () => {
  const fixture = await createLaneFixture();
  const { notes } = await tell(fixture, "hooklane.*");
  const [held, failed, stale] = await fixture.publishAll(["k/0", "k/1", "k/2"]);
  const { endHead } = createLaneLedger(fixture.db);
  const refOf = (id: string) => ({
    tenantId: fixture.tenant.id,
    eventId: `evt_${id.slice(4, 30)}`,
    endpointId: fixture.endpointId,
    replayNo: 0,
    endpoint: { revision: 1 },
  });
  await fixture.db
    .prepare("update delivery set last_status_code = 503, last_error_class = 'http_5xx' where tenant_id = ?")
    .bind(fixture.tenant.id)
    .run();
  const dead = { status: "dead_letter" as const, finalOutcome: "held_too_long" };
  await endHead(refOf(failed!), { status: "failed", finalOutcome: "payload_missing" }, Date.now());
  await endHead({ ...refOf(stale!), endpoint: { revision: 7 } }, dead, Date.now());
  await endHead(refOf(held!), dead, Date.now());
  await endHead(refOf(held!), dead, Date.now() + 1);
  expect(await notes()).toMatchObject([
    {
      id: `dead_letter:${held}`,
      facts: { final_outcome: "held_too_long", last_status_code: 503, last_error_class: "http_5xx" },
    },
  ]);
});

test("a retry, a success, a cancel and an expiry are noted by nobody", async () => {
  const scene = await createToldScene("hooklane.*");
  const [retried, succeeded, cancelled, expired] = await Promise.all([1, 2, 3, 4].map(() => scene.publishOne()));
  for (const [delivery, status] of [
    [retried!, 500],
    [succeeded!, 200],
  ] as [SceneDelivery, number][]) {
    await claim(scene, delivery, delivery.id);
    await record(scene, report(delivery, status, delivery.id));
  }
  await scene.tenant.api.post(`/v1/deliveries/${cancelled!.id}/cancel`);
  await scene.deps.endDeliveries([{ ...expired!.ref, status: "expired", finalOutcome: "expired" }], Date.now());
  expect(await scene.notes()).toEqual([]);
});

test("a 410 is noted twice: the dead letter, and the endpoint that it disables", async () => {
  const scene = await createToldScene("hooklane.*");
  await die(scene, 410);
  const notes = await scene.notes();
  expect(typesOf(notes)).toEqual(["delivery.dead_letter", "endpoint.disabled"]);
  expect(notes[1]).toEqual({
    id: `disabled:${scene.endpointId}:2`,
    type: "hooklane.endpoint.disabled",
    facts: { endpoint_id: scene.endpointId, reason: "gone" },
  });
});

test("an endpoint is noted once each time it is disabled, and not for being told so again", async () => {
  const scene = await createToldScene("hooklane.endpoint.disabled");
  const act = createActLedger(scene.db);
  const disable = () => act.disableEndpoint(scene.tenant.id, scene.endpointId, "operator", Date.now());
  await disable();
  await disable();
  await act.enableEndpoint(scene.tenant.id, scene.endpointId);
  await disable();
  const notes = await scene.notes();
  expect(notes.map(({ facts }) => facts["reason"])).toEqual(["operator", "operator"]);
  expect(new Set(notes.map(({ id }) => id)).size).toBe(2);
});

test("a 410 from a URL that is the endpoint's no more, or of one that is disabled already, disables nothing to note", async () => {
  const scene = await createToldScene("hooklane.endpoint.*");
  const [late, later] = [await scene.publishOne(), await scene.publishOne()];
  for (const delivery of [late, later]) await claim(scene, delivery, delivery.id);
  const other = { ...report(late, 410, late.id), endpointUrl: "https://former.example/" };
  await record(scene, other);
  expect(await scene.notes()).toEqual([]);
  await createActLedger(scene.db).disableEndpoint(scene.tenant.id, scene.endpointId, "operator", Date.now());
  await record(scene, report(later, 410, later.id));
  expect(await scene.notes()).toMatchObject([{ facts: { reason: "operator" } }]);
});

test("a close that is done again after its answer was lost notes nothing a second time, also once the note is gone", async () => {
  const scene = await createToldScene("hooklane.*");
  const delivery = await scene.publishOne();
  await claim(scene, delivery);
  const attempt = report(delivery, 410);
  const { closeAttempts } = createCloseLedger(scene.db);
  const lost = {
    ...scene.deps,
    closeAttempts: async (closings: Parameters<typeof closeAttempts>[0]) => {
      await closeAttempts(closings);
      throw new Error("Network connection lost.");
    },
  };
  await expect(recordAttempt(lost, attempt)).rejects.toThrow();
  await record(scene, attempt);
  expect(await scene.notes()).toHaveLength(2);
  await scene.db.prepare("delete from operational_event where tenant_id = ?").bind(scene.tenant.id).run();
  await record(scene, attempt);
  expect(await scene.notes()).toEqual([]);
});

test("two closes of one attempt in one batch note it once", async () => {
  const scene = await createToldScene("hooklane.*");
  const delivery = await scene.publishOne();
  await claim(scene, delivery);
  const { closeAttempts } = createCloseLedger(scene.db);
  const twice = {
    ...scene.deps,
    closeAttempts: (closings: Parameters<typeof closeAttempts>[0]) => closeAttempts([...closings, ...closings]),
  };
  await recordAttempt(twice, report(delivery, 410));
  expect(typesOf(await scene.notes())).toEqual(["delivery.dead_letter", "endpoint.disabled"]);
});

test("a stale token moves nothing, so there is nothing to note", async () => {
  const scene = await createToldScene("hooklane.delivery.*");
  const delivery = await scene.publishOne();
  await claim(scene, delivery, "mine");
  await record(scene, report(delivery, 400, "stale"));
  expect(await delivery.read()).toMatchObject({ status: "processing" });
  expect(await scene.notes()).toEqual([]);
  await record(scene, report(delivery, 400, "mine"));
  expect(await scene.notes()).toHaveLength(1);
});

/** A delivery of an event of the relay's own to the scene's endpoint. */
async function ownDelivery(scene: Scene, type: string): Promise<SceneDelivery> {
  const delivery = await scene.publishOne();
  await scene.db
    .prepare("update event set type = ? where tenant_id = ? and id = ?")
    .bind(type, scene.tenant.id, delivery.ref.eventId)
    .run();
  return delivery;
}

test.each(["hooklane.delivery.dead_letter", "hooklane.endpoint.disabled", "hooklane.test"])(
  "a delivery of %s raises nothing, whatever is answered, though a 410 disables its endpoint",
  async (type) => {
    const scene = await createToldScene("hooklane.*");
    for (const status of [400, 410]) {
      const delivery = await ownDelivery(scene, type);
      await claim(scene, delivery, delivery.id);
      await record(scene, report(delivery, status, delivery.id));
      expect(await delivery.read()).toMatchObject({ status: "dead_letter" });
    }
    expect((await scene.tenant.api.get(`/v1/endpoints/${scene.endpointId}`)).body.state).toBe("disabled");
    expect(await scene.notes()).toEqual([]);
  },
);

test("a replay of an operational event's delivery raises nothing either", async () => {
  const scene = await createToldScene("hooklane.*");
  const first = await ownDelivery(scene, "hooklane.delivery.dead_letter");
  await claim(scene, first);
  await record(scene, report(first, 400));
  const { body } = await scene.tenant.api.post(`/v1/deliveries/${first.id}/replay`);
  const replay: SceneDelivery = { ...first, id: body.id, ref: { ...first.ref, replayNo: 1 } };
  await claim(scene, replay, "b");
  await record(scene, report(replay, 400, "b"));
  expect((await scene.tenant.api.get(`/v1/deliveries/${body.id}`)).body).toMatchObject({ status: "dead_letter" });
  expect(await scene.notes()).toEqual([]);
});

test.each([
  ["*", null],
  ["*.*.*", null],
  ["hooklane.endpoint.disabled", "endpoint.disabled"],
  ["hooklane.*.dead_letter", "delivery.dead_letter"],
])("of a tenant that asks for %s the ledger notes what that matches, and no more", async (pattern, noted) => {
  const scene = await createToldScene(pattern);
  await die(scene, 410);
  expect(typesOf(await scene.notes())).toEqual(noted === null ? [] : [noted]);
});

test("a subscription that is disabled or deleted, or another tenant's, asks for nothing", async () => {
  const scene = await createToldScene("hooklane.*");
  await createToldScene("hooklane.*");
  const { api } = scene.tenant;
  const { data } = (await api.get(`/v1/subscriptions?endpoint_id=${scene.listenerId}`)).body;
  await api.post(`/v1/subscriptions/${data[0].id}/disable`);
  await die(scene);
  expect(await scene.notes()).toEqual([]);
  await api.post(`/v1/subscriptions/${data[0].id}/enable`);
  await die(scene);
  expect(await scene.notes()).toHaveLength(1);
  await api.delete(`/v1/endpoints/${scene.listenerId}`);
  await die(scene);
  expect(await scene.notes()).toHaveLength(1);
});

test("a tenant without such a subscription has nothing noted", async () => {
  const scene = await createScene();
  const { notes } = await tell(scene, null);
  await die(scene, 410);
  expect(await notes()).toEqual([]);
});
