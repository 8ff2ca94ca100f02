import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { deliver } from "../../../src/app/deliver/deliver.ts";
import { createInFlight } from "../../../src/app/deliver/in-flight.ts";
import { createScene, gate } from "../support/scene.ts";
import { attempt } from "../support/worker.ts";

const requests: Request[] = [];
let answer: () => Response | Promise<Response>;
beforeEach(() => {
  requests.length = 0;
  answer = () => new Response("ok");
  vi.spyOn(globalThis, "fetch").mockImplementation(async (url, init) => {
    requests.push(new Request(url as string, init));
    return answer();
  });
});
afterEach(() => vi.restoreAllMocks());

test("of many claimants at once one makes the request", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await Promise.all(Array.from({ length: 8 }, () => deliver(scene.deps, [delivery.call(1)])));
  await scene.context.settled();
  expect(requests).toHaveLength(1);
  expect(await delivery.read()).toMatchObject({ status: "succeeded", attempt_count: 1 });
});

test("a claim whose answer was lost is taken up, not made twice", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  let lost = 0;
  const deps: typeof scene.deps = {
    ...scene.deps,
    async claimDeliveries(claims, now) {
      const tokens = await scene.deps.claimDeliveries(claims, now);
      if (lost++ === 0) throw new Error("Network connection lost.");
      return tokens;
    },
  };
  await attempt(deps, scene.context, delivery.call(1));
  expect(requests).toHaveLength(1);
  expect(await delivery.read()).toMatchObject({ status: "succeeded", attempt_count: 1 });
});

test("what was taken for abandoned is not attempted again while a report of it may be on its way", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await scene.db
    .prepare("update delivery set attempt_count = 1, relay_fault_count = 1, last_attempt_at = ? where event_id = ?")
    .bind(Date.now() - 60_000, delivery.ref.eventId)
    .run();
  const later: number[] = [];
  let until = Date.now() + 60_000;
  const deps: typeof scene.deps = {
    ...scene.deps,
    reportsUntil: async () => until,
    ringLater: (calls, delayMs) => void later.push(calls[0]!.attemptNumber, delayMs),
  };
  await attempt(deps, scene.context, delivery.call(2));
  expect(requests).toHaveLength(0);
  expect(later).toEqual([2, 5_000]);
  until = 0;
  await attempt(deps, scene.context, delivery.call(2));
  expect(requests).toHaveLength(1);
});

test("a doorbell for another attempt than the next is dropped", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await attempt(scene.deps, scene.context, delivery.call(2));
  await attempt(scene.deps, scene.context, { ...delivery.call(1), deliveryId: "dlv_of_nothing" });
  expect(requests).toHaveLength(0);
  await attempt(scene.deps, scene.context, delivery.call(1));
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(requests).toHaveLength(1);
});

test("another tenant's doorbell reaches nobody's delivery", async () => {
  const [scene, other] = [await createScene(), await createScene()];
  const delivery = await scene.publishOne();
  await attempt(scene.deps, scene.context, { ...delivery.call(1), tenantId: other.tenant.id });
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject({ status: "pending", attempt_count: 0 });
});

test("once disable has answered no attempt starts, though its delivery was loaded before", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const loaded = gate();
  const disabled = gate();
  const deps: typeof scene.deps = {
    ...scene.deps,
    async getPayload(ref, size) {
      loaded.open();
      await disabled.opened;
      return scene.deps.getPayload(ref, size);
    },
  };
  const attempting = attempt(deps, scene.context, delivery.call(1));
  await loaded.opened;
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  disabled.open();
  await attempting;
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject({ status: "pending", attempt_count: 0 });
});

test("an attempt uses the settings that were in force when it was claimed, and records their revision", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const loaded = gate();
  const changed = gate();
  const deps: typeof scene.deps = {
    ...scene.deps,
    async getPayload(ref, size) {
      loaded.open();
      await changed.opened;
      return scene.deps.getPayload(ref, size);
    },
  };
  const attempting = attempt(deps, scene.context, delivery.call(1));
  await loaded.opened;
  await scene.tenant.api.patch(`/v1/endpoints/${scene.endpointId}`, { url: "https://moved.example/hook" });
  changed.open();
  await attempting;
  expect(requests).toHaveLength(0);

  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(requests.map(({ url }) => url)).toEqual(["https://moved.example/hook"]);
  expect((await delivery.read()).attempts).toMatchObject([{ endpoint_revision: 2 }]);
});

test("work that meets a disabled endpoint is held, leaves the due work, and comes back in order when enabled", async () => {
  const scene = await createScene();
  const deliveries = [await scene.publishOne(), await scene.publishOne()];
  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/disable`);
  for (const delivery of deliveries) await attempt(scene.deps, scene.context, delivery.call(1));
  const held = await scene.db
    .prepare(
      "select count(*) as n from delivery where tenant_id = ? and lane_key is not null and hold_until is not null",
    )
    .bind(scene.tenant.id)
    .first("n");
  expect(held).toBe(2);
  expect(await deliveries[0]!.read()).toMatchObject({ status: "pending" });
  expect((await scene.tenant.api.post(`/v1/deliveries/${deliveries[0]!.id}/retry`)).body.code).toBe("held");

  await scene.tenant.api.post(`/v1/endpoints/${scene.endpointId}/enable`);
  for (const delivery of deliveries) await attempt(scene.deps, scene.context, delivery.call(1));
  for (const delivery of deliveries) {
    await expect.poll(() => delivery.read()).toMatchObject({ status: "succeeded", attempt_count: 1 });
  }
  expect(requests).toHaveLength(2);
});

test("a destination that was written straight into the ledger is refused at the send: no attempt, no request", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const deps: typeof scene.deps = { ...scene.deps, destinationRules: { allowPrivate: false, ownHosts: [] } };
  await scene.db
    .prepare("update endpoint set url = 'http://169.254.169.254/' where id = ?")
    .bind(scene.endpointId)
    .run();
  await attempt(deps, scene.context, delivery.call(1));
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject({
    status: "failed",
    final_outcome: "destination_blocked",
    last_error_class: "blocked_destination",
    attempt_count: 0,
    attempts: [],
  });
});

test("a payload that is gone ends its delivery without an attempt; a payload store that fails spends nothing", async () => {
  const scene = await createScene();
  const [away, gone] = [await scene.publishOne(), await scene.publishOne()];
  const failing: typeof scene.deps = { ...scene.deps, getPayload: () => Promise.reject(new Error("R2 is away")) };
  await attempt(failing, scene.context, away.call(1));
  expect(await away.read()).toMatchObject({ status: "pending", attempt_count: 0, attempts: [] });
  await attempt({ ...scene.deps, getPayload: async () => null }, scene.context, gone.call(1));
  expect(await gone.read()).toMatchObject({ status: "failed", final_outcome: "payload_missing", attempts: [] });
  expect(requests).toHaveLength(0);
});

test("a fault of the relay during the send is recorded as internal and spends no attempt of the policy", async () => {
  const scene = await createScene({ retry_policy: { max_attempts: 1 } });
  const delivery = await scene.publishOne();
  const reset: typeof scene.deps = { ...scene.deps, send: () => Promise.reject(new Error("Network connection lost.")) };
  await attempt(reset, scene.context, delivery.call(1));
  expect(await delivery.read()).toMatchObject({
    status: "pending",
    attempts: [{ attempt_number: 1, outcome_class: "unreachable", error_class: "internal", status_code: null }],
  });
  await attempt({ ...scene.deps, now: () => Date.now() + 5_000 }, scene.context, delivery.call(2));
  expect(await delivery.read()).toMatchObject({ status: "succeeded", attempt_count: 2 });
});

test("no attempt starts after the window, however long the delivery waited for room", async () => {
  const scene = await createScene({ retry_policy: { max_age_seconds: 5 } });
  const delivery = await scene.publishOne();
  let waitedMs = 0;
  const crowded: typeof scene.deps = {
    ...scene.deps,
    now: () => Date.now() + waitedMs,
    sleep: async () => void (waitedMs += 6_000),
    inFlight: { ...createInFlight(), reserve: (_, sizes) => (waitedMs > 0 ? sizes.length : 0) },
  };
  await attempt(crowded, scene.context, delivery.call(1));
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject({ status: "expired", attempts: [] });
});

test("bytes that are not those that were published are signed for nobody", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const other = new TextEncoder().encode('{"n":2}');
  await attempt({ ...scene.deps, getPayload: async () => other }, scene.context, delivery.call(1));
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject({ status: "failed", final_outcome: "payload_missing" });
});
