import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { expect, test } from "vitest";
import { expandFanOut, expandOverdue, type ExpandFanOutDeps } from "../../../src/app/publish/expand-fan-out.ts";
import { createWatchState, tick } from "../../../src/app/watch/tick.ts";
import { FAN_OUT_OVERDUE_MS } from "../../../src/core/fan-out.ts";
import { deliveryId, eventIdTimeMs } from "../../../src/core/ids.ts";
import { consumeRings } from "../../../src/queue/consumer.ts";
import { createCrowd, type Crowd } from "../support/crowd.ts";
import { createWatchdog } from "../support/watch.ts";
import { publish } from "../support/worker.ts";

/** 567 are strict, 66 are among the first hundred besides, and the rest is a part and some of another. */
const MANY = 1_700;
const AT_ONCE = 567 + 66;
const event = { type: "order.created", source: "orders" };

const publishOne = (crowd: Crowd, fields: Record<string, unknown> = {}) =>
  publish(crowd.shard, crowd.tenant, { ...event, ...fields });

/** The watchdog's own part in it, at a moment when all is overdue; others' parts are other tests'. */
const expandLate = ({ tenant, now }: Crowd, deps: ExpandFanOutDeps) =>
  expandOverdue(
    {
      ...deps,
      listOpenParts: async (...args) =>
        (await deps.listOpenParts(args[0], 1_000)).filter((p) => p.tenantId === tenant.id),
    },
    now() + 2 * FAN_OUT_OVERDUE_MS,
  );

async function expectComplete(crowd: Crowd, eventId: string) {
  const deliveries = await crowd.deliveriesOf(eventId);
  expect([...deliveries.keys()].toSorted()).toEqual(crowd.endpointIds);
  const wrong = [...deliveries].filter(
    ([endpointId, row]) =>
      row["status"] !== "pending" ||
      row["subscription_id"] !== crowd.subscriptionOf(endpointId) ||
      row["lane_key"] !== (crowd.isStrict(endpointId) ? "" : null) ||
      row["created_at"] !== eventIdTimeMs(eventId),
  );
  expect(wrong).toEqual([]);
  expect(await crowd.openParts()).toBe(0);
  expect(await crowd.dispatchedAt(eventId)).not.toBeNull();
}

test("what is ordered, and what the answer shows, commits with the event; the rest follows, each once, and is rung for", async () => {
  const crowd = await createCrowd(MANY);
  const announced: string[] = [];
  const fanOuts: unknown[] = [];
  const shard = {
    ...crowd.shard,
    announce: (calls: { deliveryId: string }[]) => void announced.push(...calls.map((call) => call.deliveryId)),
    announceFanOuts: (some: unknown[]) => void fanOuts.push(...some),
  };
  const accepted = await publish(shard, crowd.tenant, { ...event, idempotency_key: "k" });
  const fanOut = { tenantId: crowd.tenant.id, eventId: accepted.id };
  const idOf = (endpointId: string) => deliveryId({ eventId: accepted.id, endpointId, replayNo: 0 });

  expect(accepted).toMatchObject({ duplicate: false, deliveryCount: MANY });
  const committed = await crowd.deliveriesOf(accepted.id);
  expect([...committed.keys()].toSorted()).toEqual(crowd.endpointIds.filter((id, n) => n < 100 || crowd.isStrict(id)));
  expect(committed.size).toBe(AT_ONCE);
  expect(accepted.deliveries.map(({ endpointId }) => endpointId)).toEqual(crowd.endpointIds.slice(0, 100));
  expect(announced.toSorted()).toEqual([...committed.keys()].map(idOf).toSorted());
  expect(fanOuts).toEqual([fanOut]);
  expect(await crowd.openParts()).toBe(2);
  const shown = (await crowd.tenant.api.get(`/v1/events/${accepted.id}`)).body;
  expect(shown).toMatchObject({ dispatched_at: null, delivery_count: MANY });

  // The key again, before the rest is there and after: the first answer, and not one delivery more.
  const again = () => publish(crowd.shard, crowd.tenant, { ...event, idempotency_key: "k" });
  expect(await again()).toEqual({ ...accepted, duplicate: true });
  expect((await crowd.deliveriesOf(accepted.id)).size).toBe(AT_ONCE);
  expect(await crowd.openParts()).toBe(2);
  await expandFanOut(crowd.expand, fanOut);
  await expectComplete(crowd, accepted.id);
  expect(crowd.rung.map((call) => call.deliveryId)).toEqual(
    crowd.endpointIds.filter((id) => !committed.has(id)).map(idOf),
  );
  expect(await again()).toEqual({ ...accepted, duplicate: true });
  await expectComplete(crowd, accepted.id);
});

test(
  "a fan-out loses and doubles nothing wherever its worker dies, with the answer lost or not, when nobody but the watchdog comes",
  { timeout: 60_000 },
  async () => {
    const crowd = await createCrowd(MANY);
    await publishOne(crowd, { type: "warm.up" });
    await expandLate(crowd, crowd.expand);
    for (const effect of ["before", "after"] as const) {
      let died = true;
      for (let dieAt = 0; died; dieAt++) {
        died = false;
        let calls = 0;
        // From one call on nothing gets through any more. That one may have taken effect.
        const mortal =
          <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
          async (...args: A): Promise<R> => {
            const call = calls++;
            died ||= call >= dieAt;
            if (call < dieAt) return work(...args);
            if (call === dieAt && effect === "after") await work(...args);
            throw new Error("Network connection lost.");
          };
        const fields = { ...event, idempotency_key: `${effect}-${dieAt}` };
        const shard = { ...crowd.shard, commitPublish: mortal(crowd.shard.commitPublish) };
        const first = await publish(shard, crowd.tenant, fields).catch(() => null);
        // A producer without an answer asks again.
        const accepted = first ?? (await publish(crowd.shard, crowd.tenant, fields));
        const { findOpenPart, expandPart } = crowd.expand;
        const deps = { ...crowd.expand, findOpenPart: mortal(findOpenPart), expandPart: mortal(expandPart) };
        if (first) await expandFanOut(deps, { tenantId: crowd.tenant.id, eventId: first.id }).catch(() => {});
        await expandLate(crowd, crowd.expand);
        await expectComplete(crowd, accepted.id);
      }
    }
    const events = crowd.db.prepare("select count(*) as n from event where tenant_id = ?").bind(crowd.tenant.id);
    // The warm-up, and for each effect: the commit, the look, two batches, and the run in which nobody died.
    expect(await events.first("n")).toBe(1 + 2 * 5);
  },
);

test("a commit whose answer was lost is done again after its fan-out is over, and opens nothing anew", async () => {
  const crowd = await createCrowd(MANY);
  const { commitPublish } = crowd.shard;
  let isLost = true;
  const lossy = {
    ...crowd.shard,
    async commitPublish(...args: Parameters<typeof commitPublish>) {
      const result = await commitPublish(...args);
      if (!isLost) return result;
      isLost = false;
      await expandFanOut(crowd.expand, { tenantId: crowd.tenant.id, eventId: args[2][0]!.id });
      throw new Error("Network connection lost.");
    },
  };
  const accepted = await publish(lossy, crowd.tenant, event);
  await expectComplete(crowd, accepted.id);
});

test("consumers and the watchdog at it at once make each delivery once", async () => {
  const crowd = await createCrowd(MANY);
  const accepted = await publishOne(crowd);
  const fanOut = { tenantId: crowd.tenant.id, eventId: accepted.id };
  await Promise.all([
    expandFanOut(crowd.expand, fanOut),
    expandFanOut(crowd.expand, fanOut),
    expandLate(crowd, crowd.expand),
  ]);
  await expectComplete(crowd, accepted.id);
  const rung = new Set(crowd.rung.map((call) => call.deliveryId));
  expect(rung.size).toBe(MANY - AT_ONCE);
});

test("a doorbell for a fan-out is acknowledged when all is on record, and put back while the ledger is away", async () => {
  const crowd = await createCrowd(MANY);
  const accepted = await publishOne(crowd);
  const { shard, id: tenant } = crowd.tenant;
  const batch = () =>
    createMessageBatch("hooklane-first-attempts", [
      { id: "0", timestamp: new Date(), attempts: 1, body: { shard, tenant, deliveries: [], fan_outs: [accepted.id] } },
    ]);
  const refused = batch();
  const away = { expandPart: () => Promise.reject(new Error("D1 is away")) };
  await consumeRings(refused, () => ({ ...(crowd.expand as any), ...away }));
  expect((await getQueueResult(refused, createExecutionContext())).retryMessages).toMatchObject([{ msgId: "0" }]);
  const taken = batch();
  await consumeRings(taken, () => crowd.expand as any);
  expect((await getQueueResult(taken, createExecutionContext())).explicitAcks).toEqual(["0"]);
  await expectComplete(crowd, accepted.id);
});

test("the watchdog is up when a fan-out is overdue, finishes it though no doorbell came, and is not needed for it after", async () => {
  const crowd = await createCrowd(MANY);
  const accepted = await publishOne(crowd);
  const { real, idle, mine } = createWatchdog(crowd);
  const acceptedAt = eventIdTimeMs(accepted.id);
  const { nextDueAt } = await real.findNextDue(acceptedAt);
  expect(nextDueAt).toBeLessThanOrEqual(acceptedAt + FAN_OUT_OVERDUE_MS);
  let now = acceptedAt + FAN_OUT_OVERDUE_MS;
  const deps = {
    ...idle,
    now: () => now,
    announce: crowd.expand.announce,
    listOpenParts: async (beforeId: string) => mine(await real.listOpenParts(beforeId, 1_000)),
  };
  const state = createWatchState(now);
  await tick(deps, state);
  expect(await crowd.openParts()).toBe(2);
  now++;
  await tick(deps, state);
  await expectComplete(crowd, accepted.id);
  expect(crowd.rung).toHaveLength(MANY - AT_ONCE);
});
