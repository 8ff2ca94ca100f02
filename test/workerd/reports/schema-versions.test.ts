import { expect, test } from "vitest";
import { createSchemaVersionsReport } from "../../../src/storage/ledger/reports/schema-versions.ts";
import { createTestTenant } from "../support/api.ts";
import { explain } from "../support/plans.ts";
import { createScene, empty, type Scene } from "../support/scene.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";
import { seed, type SeedDelivery } from "./ledger.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const versions = async ({ tenant }: Pick<Scene, "tenant">, query = "") => {
  const answer = await tenant.api.get(`/v1/reports/schema-versions${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

async function subscribe({ tenant }: Scene, fields: Record<string, unknown>) {
  const { body: endpoint } = await tenant.api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
  const { status, body } = await tenant.api.post("/v1/subscriptions", { endpoint_id: endpoint.id, ...fields });
  expect(status).toBe(201);
  return { id: body.id as string, endpointId: endpoint.id as string };
}

const register = async ({ tenant }: Scene, name: string, ...schemaVersions: number[]) => {
  for (const schema_version of schemaVersions) {
    const { status } = await tenant.api.post("/v1/event-types", { name, schema_version });
    expect(status).toBe(201);
  }
};

/** What the report says of each subscription of a row, by id. */
const shown = (row: any) =>
  Object.fromEntries(
    row.subscriptions.map((of: any) => [of.subscription_id, [of.pinned_version, of.decided_by, of.withheld]]),
  );
const rowOf = (report: any, eventType: string | null, schemaVersion: number | null) =>
  report.data.find((row: any) => row.event_type === eventType && row.schema_version === schemaVersion);

test("version 3 goes to whoever is pinned to it and to whoever takes the newest, as the newest event says", async () => {
  const scene = await createScene();
  const everything = (await scene.tenant.api.get("/v1/subscriptions")).body.data[0].id;
  await register(scene, "order.created", 1, 2, 3);
  const pinned = await subscribe(scene, { event_type_pattern: "order.created", schema_version: 3 });
  const older = await subscribe(scene, { event_type_pattern: "order.*", schema_version: 2 });
  const other = await subscribe(scene, { event_type_pattern: "user.*", schema_version: 3 });
  const disabled = await subscribe(scene, { event_type_pattern: "order.created", schema_version: 3 });
  await scene.tenant.api.post(`/v1/subscriptions/${disabled.id}/disable`);

  const before = await versions(scene, "?event_type=order.created&schema_version=3");
  expect(before).toMatchObject({ complete: true, groups: 1, types: 1 });
  expect(before.data).toHaveLength(1);
  expect(before.data[0]).toMatchObject({
    event_type: "order.created",
    registered: true,
    retired_at: null,
    events: 0,
    last_event_at: null,
    subscription_count: 2,
  });
  expect(shown(before.data[0])).toEqual({
    [everything]: [null, "registered", null],
    [pinned.id]: [3, "pin", null],
  });

  const deps = shardDeps(scene.tenant, createTestContext());
  const event = { type: "order.created", source: "orders", schema_version: 1 };
  await publish(deps, scene.tenant, event, undefined, [2]);
  const now = await versions(scene);
  expect(shown(rowOf(now, "order.created", 2))).toEqual({
    [everything]: [null, "recent_event", null],
    [older.id]: [2, "pin", null],
  });
  expect(shown(rowOf(now, "order.created", 3))).toEqual({ [pinned.id]: [3, "pin", "version_not_published"] });
  expect(shown(rowOf(now, null, 3))).toEqual({ [other.id]: [3, "pin", null] });
  expect(rowOf(now, "order.created", 1)).toMatchObject({ events: 1, subscriptions: [] });

  await publish(deps, scene.tenant, event, undefined, [2, 3]);
  await scene.tenant.api.patch("/v1/event-types/order.created", { schema_version: 2, retired: true, force: true });
  const after = await versions(scene);
  expect(shown(rowOf(after, "order.created", 3))).toEqual({
    [everything]: [null, "recent_event", null],
    [pinned.id]: [3, "pin", null],
  });
  expect(rowOf(after, "order.created", 2)).toMatchObject({ events: 2, retired_at: expect.stringContaining("T") });
  expect(shown(rowOf(after, "order.created", 2))).toEqual({ [older.id]: [2, "pin", "version_retired"] });
  await empty(scene);
});

test("it says what each received in the window: by version, how many and when the last, replays too", async () => {
  const scene = await createScene();
  const at = Date.now() - 30 * MINUTE_MS;
  const got = (schemaVersion: number | null, fields: SeedDelivery = {}): SeedDelivery => ({ schemaVersion, ...fields });
  await seed(scene, [
    { at, schemaVersion: 2, deliveries: [got(null)] },
    { at: at + 10, schemaVersion: 2, variants: [3], deliveries: [got(3), got(3, { replayNo: 1, createdAt: at + 11 })] },
    { at: at + 20, schemaVersion: 3, deliveries: [got(null, { status: "dead_letter" })] },
    { at: at + 30, schemaVersion: 3, deliveries: [got(null, { status: "pending" })] },
    { at: at + 40, schemaVersion: 3, type: "other.type", deliveries: [got(null)] },
    { at: at - 40 * MINUTE_MS, schemaVersion: 1, deliveries: [got(null)] },
  ]);
  const time = (ms: number) => new Date(ms).toISOString();
  const row = (await versions(scene, "?event_type=order.created&schema_version=3")).data[0];
  expect(row).toMatchObject({ events: 3, last_event_at: time(at + 30) });
  expect(row.subscriptions[0]).toMatchObject({
    received_complete: true,
    received: [
      { event_type: "order.created", schema_version: 3, deliveries: 2, last_at: time(at + 10) },
      { event_type: "order.created", schema_version: 2, deliveries: 1, last_at: time(at) },
    ],
  });
  const longer = (await versions(scene, "?window=2h&schema_version=3&event_type=order.created")).data[0];
  expect(longer.subscriptions[0].received.map((of: any) => of.schema_version)).toEqual([3, 2, 1]);
});

test("more than is looked at is said, of events and of what each received", async () => {
  const scene = await createScene();
  const now = Date.now();
  const at = now - MINUTE_MS;
  await seed(
    scene,
    Array.from({ length: 30 }, (_, i) => ({ at: at + i, schemaVersion: i < 15 ? 1 : 2, deliveries: [{}] })),
  );
  const ledger = createSchemaVersionsReport(scene.db, { events: 10, received: 12 });
  const [subscription] = (await scene.tenant.api.get("/v1/subscriptions")).body.data;
  const known = await ledger.readVersions(scene.tenant.id, null, now - DAY_MS, now);
  expect(known).toMatchObject({ completeFrom: at + 21, recent: [{ versions: [2], count: 9 }] });
  const some = await ledger.readReceived(scene.tenant.id, [subscription.id], now - DAY_MS, now);
  expect(some.get(subscription.id)).toMatchObject({
    isComplete: false,
    versions: [{ schemaVersion: 2, deliveries: 12 }],
  });
  const all = await createSchemaVersionsReport(scene.db).readReceived(
    scene.tenant.id,
    [subscription.id],
    now - DAY_MS,
    now,
  );
  expect(all.get(subscription.id)!.isComplete).toBe(true);
  expect(all.get(subscription.id)!.versions.map(({ deliveries }) => deliveries)).toEqual([15, 15]);
});

test("nothing of another tenant is in it, and of nothing there is nothing", async () => {
  const scene = await createScene();
  await register(scene, "order.created", 1);
  await seed(scene, [{ at: Date.now() - 1_000, deliveries: [{}] }]);
  const other = await createTestTenant();
  expect(await versions({ tenant: other })).toMatchObject({ data: [], groups: 0, types: 0, complete: true });
  const [subscription] = (await scene.tenant.api.get("/v1/subscriptions")).body.data;
  const foreign = await createSchemaVersionsReport(scene.db).readReceived(other.id, [subscription.id], 0, Date.now());
  expect(foreign.get(subscription.id)!.versions).toEqual([]);
});

test("neither events nor deliveries are walked but by their keys", async () => {
  const scene = await createScene();
  const plan = await explain(scene.db, async (db) => {
    const ledger = createSchemaVersionsReport(db);
    await ledger.readVersions(scene.tenant.id, "order.created", 0, Date.now());
    await ledger.readReceived(scene.tenant.id, [scene.endpointId], 0, Date.now());
  });
  expect(
    plan.filter((step) => /^(SCAN|SEARCH) (event|delivery|attempt|subscription|event_type|d|e|s)\b/.test(step)),
  ).toEqual([
    "SEARCH event_type USING PRIMARY KEY (tenant_id=?)",
    "SEARCH s USING INDEX subscription_living (tenant_id=?)",
    "SEARCH e USING PRIMARY KEY (tenant_id=? AND id=?)",
    "SEARCH event USING PRIMARY KEY (tenant_id=? AND id>?)",
    "SCAN s VIRTUAL TABLE INDEX 1:",
    "SEARCH d USING INDEX delivery_subscription (subscription_id=? AND created_at>?)",
    "SEARCH e USING PRIMARY KEY (tenant_id=? AND id=?)",
  ]);
});

test("a version is a whole number from 1", async () => {
  const { tenant } = await createScene();
  for (const bad of ["0", "1.5", "x", "99999999999", "2147483648"]) {
    const { status, body } = await tenant.api.get(`/v1/reports/schema-versions?schema_version=${bad}`);
    expect([status, body.errors[0].path]).toEqual([422, "schema_version"]);
  }
});
