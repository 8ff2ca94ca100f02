import { expect, test } from "vitest";
import { expandFanOut } from "../../../src/app/publish/expand-fan-out.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createCloseLedger } from "../../../src/storage/ledger/close.ts";
import { createEraseLedger } from "../../../src/storage/ledger/erase.ts";
import { createRetentionLedger } from "../../../src/storage/ledger/retention.ts";
import { createApi, operatorToken } from "../support/api.ts";
import { reroute, type LaneFixture } from "../lane/support.ts";
import { createCrowd, type Crowd } from "../support/crowd.ts";
import { publish } from "../support/worker.ts";

const MANY = 1_300;
const event = { type: "order.created", source: "orders" };

const publishOne = (crowd: Crowd) => publish(crowd.shard, crowd.tenant, event);
const expand = ({ expand: deps, tenant }: Crowd, eventId: string) =>
  expandFanOut(deps, { tenantId: tenant.id, eventId });
/** Endpoints of which nothing commits with the event. */
const laterOf = (crowd: Crowd) => crowd.endpointIds.filter((id, n) => n >= 100 && !crowd.isStrict(id));
const rerouteOf = ({ tenant, db }: Crowd, endpointId: string) =>
  reroute({ tenant, db, endpointId, now: () => Date.now() } as LaneFixture, "strict", "lane");

async function policyOf({ db, tenant }: Crowd, row: Record<string, any>) {
  const sql = "select policy from retry_policy where tenant_id = ? and id = ?";
  const policy = await db.prepare(sql).bind(tenant.id, row["retry_policy_id"]).first<string>("policy");
  return JSON.parse(policy!);
}

test(
  "what follows an event is as it was accepted, however endpoints and subscriptions have changed before it is written",
  { timeout: 30_000 },
  async () => {
    const crowd = await createCrowd(MANY);
    const { api, id: tenantId } = crowd.tenant;
    const ok = async (answer: Promise<{ status: number; body: any }>) =>
      expect((await answer).status).toBeLessThan(300);
    const [disabled, enabled, deleted, gone, paused, strict, policy, override, unsubscribed, disabledSub, both] =
      laterOf(crowd) as [string, string, string, string, string, string, string, string, string, string, string];
    await ok(api.post(`/v1/endpoints/${enabled}/disable`));
    await ok(api.post(`/v1/endpoints/${both}/disable`));
    const first = await publishOne(crowd);

    await ok(api.post(`/v1/endpoints/${disabled}/disable`));
    await ok(api.post(`/v1/endpoints/${enabled}/enable`));
    await ok(api.delete(`/v1/endpoints/${deleted}`));
    // What was accepted while it was disabled stays failed for that, though it is deleted after.
    await ok(api.delete(`/v1/endpoints/${both}`));
    await ok(api.post(`/v1/endpoints/${paused}/pause`));
    await ok(api.patch(`/v1/endpoints/${policy}`, { retry_policy: { max_attempts: 2 } }));
    await ok(api.patch(`/v1/subscriptions/${crowd.subscriptionOf(override)}`, { retry_policy: { max_attempts: 3 } }));
    await ok(api.delete(`/v1/subscriptions/${crowd.subscriptionOf(unsubscribed)}`));
    await ok(api.post(`/v1/subscriptions/${crowd.subscriptionOf(disabledSub)}/disable`));
    // A 410 to something else that this endpoint was sent.
    await createCloseLedger(crowd.db).closeAttempts([
      {
        tenantId,
        eventId: first.id,
        endpointId: gone,
        replayNo: 7,
        attemptNumber: 1,
        token: "t",
        attempt: {
          respondedAt: Date.now(),
          latencyMs: 1,
          statusCode: 410,
          outcomeClass: "rejected",
          errorClass: "gone",
          responseBodySha256: null,
          responseHeadersJson: null,
          partnerRequestId: null,
        },
        delivery: { status: "dead_letter", finalOutcome: "gone" },
        disable: { url: "https://consumer.example/hook", reason: "gone" },
        clock: null,
      },
    ]);
    await rerouteOf(crowd, strict);
    const second = await publishOne(crowd);
    // The later one first.
    await expand(crowd, second.id);
    await expand(crowd, first.id);

    const of = async (accepted: { id: string }) => {
      const rows = await crowd.deliveriesOf(accepted.id);
      return (endpointId: string) => rows.get(endpointId)!;
    };
    const [firstOf, secondOf] = [await of(first), await of(second)];
    expect((await crowd.deliveriesOf(first.id)).size).toBe(MANY);
    expect(firstOf(disabled)).toMatchObject({ status: "pending" });
    expect(secondOf(disabled)).toMatchObject({ status: "failed", final_outcome: "endpoint_disabled" });
    expect(firstOf(gone)).toMatchObject({ status: "pending" });
    expect(secondOf(gone)).toMatchObject({ status: "failed", final_outcome: "endpoint_disabled" });
    expect(firstOf(enabled)).toMatchObject({ status: "failed", final_outcome: "endpoint_disabled" });
    expect(firstOf(enabled)["terminal_at"]).toBe(firstOf(enabled)["created_at"]);
    expect(secondOf(enabled)).toMatchObject({ status: "pending" });
    expect(firstOf(deleted)).toMatchObject({ status: "failed", final_outcome: "endpoint_deleted" });
    expect(secondOf(deleted)).toBeUndefined();
    expect(firstOf(both)).toMatchObject({ status: "failed", final_outcome: "endpoint_disabled" });
    expect(firstOf(paused)).toMatchObject({ status: "pending", lane_key: null });
    expect(firstOf(strict)).toMatchObject({ status: "pending", lane_key: "" });
    expect(secondOf(strict)).toMatchObject({ status: "pending", lane_key: "" });
    expect(firstOf(strict)["lane_position"]).toBeLessThan(secondOf(strict)["lane_position"]);
    expect(await policyOf(crowd, firstOf(policy))).toMatchObject({ max_attempts: 10 });
    expect(await policyOf(crowd, secondOf(policy))).toMatchObject({ max_attempts: 2 });
    expect(await policyOf(crowd, firstOf(override))).toMatchObject({ max_attempts: 10 });
    expect(await policyOf(crowd, secondOf(override))).toMatchObject({ max_attempts: 3 });
    for (const endpointId of [unsubscribed, disabledSub]) {
      expect(firstOf(endpointId)).toMatchObject({ status: "pending" });
      expect(secondOf(endpointId)).toBeUndefined();
    }
  },
);

test("when its tenant is deleted or its payload erased meanwhile, the rest of an event is on record, and sent to nobody", async () => {
  const crowd = await createCrowd(MANY);
  const { tenant } = crowd;
  const [erased, orphaned] = [await publishOne(crowd), await publishOne(crowd)];
  // As the API erases, but without a call to each lane.
  const { markErasedPart } = createEraseLedger(crowd.db);
  while ((await markErasedPart(tenant.id, erased.id, Date.now())).hasMore);
  await expand(crowd, erased.id);
  const statuses = async (eventId: string) =>
    new Set([...(await crowd.deliveriesOf(eventId)).values()].map((row) => `${row["status"]}/${row["final_outcome"]}`));
  expect([...(await statuses(erased.id))]).toEqual(["failed/payload_missing"]);
  await createApi(operatorToken).delete(`/v1/tenants/${tenant.id}`);
  await expand(crowd, orphaned.id);
  const rows = await crowd.deliveriesOf(orphaned.id);
  expect(rows.size).toBe(MANY);
  for (const endpointId of laterOf(crowd)) {
    expect(rows.get(endpointId)).toMatchObject({ status: "failed", final_outcome: "endpoint_deleted" });
  }
});

test("an event that has expired is not deleted while some of what it owes is not on record", async () => {
  const crowd = await createCrowd(MANY);
  const { db, tenant } = crowd;
  const { id } = await publishOne(crowd);
  const { payload_ref: payloadRef } = (await tenant.api.get(`/v1/events/${id}`)).body;
  await db.prepare("update event set expires_at = 1 where id = ?").bind(id).run();
  const end = () =>
    db
      .prepare("update delivery set status = 'expired', terminal_at = 1, next_attempt_at = null where event_id = ?")
      .bind(id)
      .run();
  await end();
  const { deleteEvents } = createRetentionLedger(db);
  const old = { tenantId: tenant.id, id, payloadRef, expiresAt: 1 };
  const count = (table: string) =>
    db.prepare(`select count(*) as n from ${table} where tenant_id = ?`).bind(tenant.id).first<number>("n");
  expect(await deleteEvents([old], 5_000)).toEqual({ freedObjects: [], hasMore: false });
  expect(await count("event")).toBe(1);
  await expand(crowd, id);
  expect(await count("delivery")).toBe(MANY);
  await end();
  expect((await deleteEvents([old], 5_000)).freedObjects).toHaveLength(1);
  expect([await count("event"), await count("delivery")]).toEqual([0, 0]);
});

test("an endpoint's change looks at no more than the open parts of its tenant, and writes one row for each that it is in", async () => {
  const [crowd, other] = [await createCrowd(MANY), await createCrowd(MANY)];
  for (const some of [crowd, crowd, other]) await publishOne(some);
  const [endpointId] = laterOf(crowd);
  const act = createActLedger(crowd.db);
  await act.disableEndpoint(crowd.tenant.id, endpointId!, "operator", Date.now());
  const { results } = await crowd.db
    .prepare("select status from delivery where endpoint_id = ?")
    .bind(endpointId)
    .all<{ status: string }>();
  expect(results).toEqual([{ status: "pending" }, { status: "pending" }]);
  expect(await crowd.openParts()).toBe(2);
  expect(await other.openParts()).toBe(1);
});
