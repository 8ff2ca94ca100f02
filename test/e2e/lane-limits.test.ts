import { describe, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  deliveryWhen,
  eventually,
  expectStatus,
  terminalDelivery,
} from "./support/client.ts";
import {
  act,
  actOn,
  answering,
  answeringAfter,
  failedOnce,
  holding,
  keyOf,
  laneWhen,
  numberOf,
  patchEndpoint,
  publishNumbered,
  range,
  readDelivery,
  SLOW_RETRY,
} from "./support/lanes.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import { withReceiver } from "./support/receiver.ts";
import { inTime, shortestSpanMs } from "./support/rate.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { sleep } from "./support/sleep.ts";

const relay = await sharedRelay();

const at = (time: string) => Date.parse(time);
const waitedMs = ({ created_at, scheduled_at }: any) => at(scheduled_at) - at(created_at);

describe.concurrent("a concurrency cap", () => {
  test.each([{ ordering_mode: "unordered" }, { ordering_mode: "keyed" }])("is used up and never passed: %j", (mode) =>
    withReceiver(async (receiver) => {
      const CAP = 3;
      const gate = holding();
      const answer = answeringAfter(30);
      receiver.handle((request, ...rest) => (request.n <= CAP ? gate.handler : answer)(request, ...rest));
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url, ...mode, concurrency_cap: CAP });
      await publishNumbered(tenant, 60, { keyOf: (n) => `key-${n % 10}` });
      // None of the first is answered before there are as many as may be.
      await receiver.waitFor(CAP);
      await sleep(500);
      expect(receiver.received).toHaveLength(CAP);
      gate.letGo();
      await receiver.waitFor(60);
      expect(answer.most).toBeLessThanOrEqual(CAP);
    }),
  );

  /** Keys of which a lane's object reads more than one part. */
  const MANY_KEYS = 70;

  test("counts what an object before a move has under way, however many keys wait before it", () =>
    withReceiver(async (receiver) => {
      const gate = holding();
      let inFlight = 0;
      let most = 0;
      receiver.handle((request, response, raw) => {
        if (keyOf(request)!.startsWith("m")) return void response.writeHead(500).end();
        most = Math.max(most, ++inFlight);
        response.on("finish", () => inFlight--);
        void gate.handler(request, response, raw);
      });
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, {
        url: receiver.url,
        ordering_mode: "keyed",
        concurrency_cap: 2,
        retry_policy: SLOW_RETRY,
      });
      await publishNumbered(tenant, MANY_KEYS, { keyOf: (n) => `m${n}` });
      await receiver.waitFor(MANY_KEYS);
      await publishNumbered(tenant, 2, { from: 100, keyOf: (n) => `z${n}` });
      await receiver.waitFor(MANY_KEYS + 2);
      const ids = await publishNumbered(tenant, 2, { from: 200, keyOf: (n) => `a${n}` });
      await act(tenant, endpoint.id, "lane/move");
      // A lane that is not full shows it: its heads go on.
      await sleep(1_500);
      expect(most).toBe(2);
      gate.letGo();
      for (const id of ids) await terminalDelivery(tenant, id);
      expect(most).toBe(2);
    }));

  test("counts what queues have under way when it is set, however much else is open", () =>
    withReceiver(async (receiver) => {
      const gate = holding();
      let inFlight = 0;
      receiver.handle((request, response, raw) => {
        const n = numberOf(request);
        if (n < MANY_KEYS && request.headers["x-webhook-attempt"] === "1") return void response.writeHead(500).end();
        inFlight++;
        response.on("finish", () => inFlight--);
        void gate.handler(request, response, raw);
      });
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, { url: receiver.url, retry_policy: SLOW_RETRY });
      const [oldest] = await publishNumbered(tenant, MANY_KEYS);
      await receiver.waitFor(MANY_KEYS);
      await failedOnce(tenant, oldest!);
      await publishNumbered(tenant, 2, { from: 100 });
      await receiver.waitFor(MANY_KEYS + 2);
      await patchEndpoint(tenant, endpoint.id, { concurrency_cap: 1 });
      await expectStatus(202, actOn(tenant, oldest!, "retry"));
      await sleep(1_500);
      expect(inFlight).toBe(2);
      gate.letGo();
      await terminalDelivery(tenant, oldest!);
    }));
});

describe.concurrent("a rate", () => {
  const RATE = 20;
  const EVENTS = 200;

  test("spreads what is queued: never more a second than it says, none lost", () =>
    withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url, rate_limit_per_second: RATE });
      const ids = await publishNumbered(tenant, EVENTS);
      await receiver.waitFor(EVENTS);
      const arrivals = receiver.received.map((request) => request.at);
      for (const id of ids) expect(await terminalDelivery(tenant, id)).toMatchObject({ attempt_count: 1 });
      const seenMs = shortestSpanMs(receiver.received.map(inTime), RATE);
      const tookMs = Math.max(...arrivals) - Math.min(...arrivals);
      console.log(
        `${EVENTS} events at ${RATE} a second took ${tookMs} ms; ${RATE + 1} requests spanned at least ${seenMs} ms`,
      );
      expect(seenMs).toBeGreaterThanOrEqual(1_000);
    }));

  test("holds for an object that has just taken over and knows nothing of the second before", () =>
    withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, { url: receiver.url, rate_limit_per_second: 5 });
      await publishNumbered(tenant, 20);
      for (const arrived of [4, 8, 12]) {
        await receiver.waitFor(arrived);
        await act(tenant, endpoint.id, "lane/move");
      }
      await receiver.waitFor(20);
      expect(shortestSpanMs(receiver.received.map(inTime), 5)).toBeGreaterThanOrEqual(1_000);
    }));

  test("holds for retries too, in order", () =>
    withReceiver(async (receiver) => {
      receiver.handle(answering((n, times) => (n % 2 === 0 && times === 1 ? 500 : 200)));
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, {
        url: receiver.url,
        ordering_mode: "strict",
        rate_limit_per_second: 10,
        retry_policy: { delays_seconds: [0], jitter: 0 },
      });
      await publishNumbered(tenant, 20);
      await receiver.waitFor(30);
      expect(receiver.received.map(numberOf)).toEqual(range(20).flatMap((n) => (n % 2 === 0 ? [n, n] : [n])));
      expect(shortestSpanMs(receiver.received.map(inTime), 10)).toBeGreaterThanOrEqual(1_000);
    }));

  test("shows in how long after created_at each was scheduled; without limits nothing shows", () =>
    withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      const limited = await createEndpoint(tenant, { url: receiver.url, rate_limit_per_second: 2 });
      await createEndpoint(tenant, { url: receiver.url });
      const ids = await publishNumbered(tenant, 5);
      await receiver.waitFor(10);
      const deliveries = await Promise.all(ids.map((id) => terminalDelivery(tenant, id)));
      const [own, free] = [true, false].map((is) =>
        deliveries.filter(({ endpoint_id }) => (endpoint_id === limited.id) === is).map(waitedMs),
      );
      expect(free).toEqual([0, 0, 0, 0, 0]);
      const waits = own!.toSorted((a, b) => a - b);
      // Of any three one starts a second after another.
      expect(waits[2]! - waits[0]!).toBeGreaterThanOrEqual(1_000);
      expect(waits[4]! - waits[2]!).toBeGreaterThanOrEqual(1_000);
      // First requested_at − scheduled_at is the relay's own lag.
      for (const { scheduled_at, attempts } of deliveries) {
        expect(at(attempts[0].requested_at)).toBeGreaterThanOrEqual(at(scheduled_at));
      }
    }));
});

describe.concurrent("scheduled_at", () => {
  test("comes after what a delivery of a strict lane waited for: the head before it, and a pause", () =>
    withReceiver(async (receiver) => {
      const gate = holding();
      const answer = answeringAfter(400);
      receiver.handle((request, ...rest) => (numberOf(request) === 1 ? gate.handler : answer)(request, ...rest));
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, { url: receiver.url, ordering_mode: "strict" });
      const ids = await publishNumbered(tenant, 3);
      await receiver.waitFor(2);
      const { paused_at } = await act(tenant, endpoint.id, "pause");
      gate.letGo();
      await deliveryWhen(tenant, ids[1]!, ({ status }) => status === "succeeded");
      await sleep(300);
      expect(await readDelivery(tenant, ids[2]!)).toMatchObject({ status: "pending", scheduled_at: null });
      const resumedAt = Date.now();
      await act(tenant, endpoint.id, "resume");
      const [first, second, third] = await Promise.all(ids.map((id) => terminalDelivery(tenant, id)));
      expect(at(second.scheduled_at)).toBeGreaterThanOrEqual(at(first.terminal_at));
      expect(at(second.scheduled_at)).toBeLessThanOrEqual(at(paused_at));
      expect(at(third.scheduled_at)).toBeGreaterThanOrEqual(resumedAt);
    }));
});

describe.concurrent("the age clock", () => {
  const FAILING_SLOWLY = {
    delays_seconds: [0.5],
    jitter: 0,
    max_age_seconds: 15,
    max_attempts: 50,
    same_error_limit: 50,
  };

  test("does not run while a delivery waits behind others", () =>
    withReceiver(async (receiver) => {
      receiver.handle(answering((n, times) => (n < 2 || times === 1 ? 500 : 200)));
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url, ordering_mode: "strict", retry_policy: FAILING_SLOWLY });
      const ids = await publishNumbered(tenant, 3);
      const [first, second, third] = await Promise.all(ids.map((id) => terminalDelivery(tenant, id)));
      for (const delivery of [first, second]) {
        expect(delivery).toMatchObject({ status: "expired", final_outcome: "expired" });
        expect(at(delivery.terminal_at) - at(delivery.scheduled_at)).toBeGreaterThanOrEqual(15_000);
        expect(delivery.attempt_count).toBeGreaterThan(1);
      }
      // Twice its age after it was created it is tried, and tried again.
      expect(third).toMatchObject({ status: "succeeded", attempt_count: 2 });
      expect(waitedMs(third)).toBeGreaterThanOrEqual(30_000);
    }));

  test.each(["strict", "unordered"])(
    "stands still during a pause and begins anew with the resume: %s",
    (ordering_mode) =>
      withReceiver(async (receiver) => {
        receiver.handle((_, response) => void response.writeHead(500).end());
        const tenant = await createTenant(relay.url);
        const endpoint = await createEndpoint(tenant, {
          url: receiver.url,
          ordering_mode,
          retry_policy: FAILING_SLOWLY,
        });
        const [id] = await publishNumbered(tenant, 1);
        await failedOnce(tenant, id!);
        await act(tenant, endpoint.id, "pause");
        await sleep(15_500);
        expect(await readDelivery(tenant, id!)).toMatchObject({ status: "pending" });
        const before = receiver.received.length;
        const resumedAt = Date.now();
        await act(tenant, endpoint.id, "resume");
        const delivery = await terminalDelivery(tenant, id!);
        expect(delivery).toMatchObject({ status: "expired" });
        expect(receiver.received.length).toBeGreaterThan(before + 1);
        expect(at(delivery.terminal_at) - resumedAt).toBeGreaterThanOrEqual(15_000);
      }),
  );

  test("runs while an endpoint is disabled: what is held too long expires, and the next is delivered", () =>
    withReceiver(async (receiver) => {
      receiver.handle(answering((n) => (n === 0 ? 500 : 200)));
      const tenant = await createTenant(relay.url);
      const retry_policy = { ...SLOW_RETRY, max_age_seconds: 15 };
      const endpoint = await createEndpoint(tenant, { url: receiver.url, ordering_mode: "strict", retry_policy });
      const ids = await publishNumbered(tenant, 2);
      await failedOnce(tenant, ids[0]!);
      await act(tenant, endpoint.id, "disable");
      await sleep(15_000);
      await act(tenant, endpoint.id, "enable");
      const [first, second] = ids.map((id) => terminalDelivery(tenant, id, LEASE_PATIENCE_MS));
      expect(await first).toMatchObject({ status: "expired", attempt_count: 1 });
      expect(await second).toMatchObject({ status: "succeeded" });
    }));

  test("ends a head that waits for a later retry when its age is up, and not when that is due", () =>
    withReceiver(async (receiver) => {
      receiver.handle(answering((n) => (n === 0 ? 500 : 200)));
      const tenant = await createTenant(relay.url);
      const retry_policy = { ...SLOW_RETRY, max_age_seconds: 15 };
      await createEndpoint(tenant, { url: receiver.url, ordering_mode: "strict", retry_policy });
      const ids = await publishNumbered(tenant, 2);
      const head = await terminalDelivery(tenant, ids[0]!);
      expect(head).toMatchObject({ status: "expired", attempt_count: 1 });
      expect(at(head.terminal_at) - at(head.scheduled_at)).toBeGreaterThanOrEqual(15_000);
      // The retry would be due in an hour.
      expect(at(head.terminal_at) - at(head.scheduled_at)).toBeLessThan(60_000);
      await receiver.waitFor(2);
    }));
});

describe.concurrent("max_head_hold_seconds", () => {
  const HOLD = { ordering_mode: "strict", max_head_hold_seconds: 15, retry_policy: SLOW_RETRY };
  const onlyFirstFails = () => answering((n) => (n === 0 ? 500 : 200));

  test("ends a head that has held up its lane for so long, which then goes on", () =>
    withReceiver(async (receiver) => {
      receiver.handle(onlyFirstFails());
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url, ...HOLD });
      const ids = await publishNumbered(tenant, 3);
      const head = await terminalDelivery(tenant, ids[0]!);
      expect(head).toMatchObject({ status: "dead_letter", final_outcome: "held_too_long", attempt_count: 1 });
      expect(at(head.terminal_at) - at(head.scheduled_at)).toBeGreaterThanOrEqual(15_000);
      await receiver.waitFor(3);
      expect(receiver.received.map(numberOf)).toEqual([0, 1, 2]);
    }));

  test("stops the lane where dead heads do", () =>
    withReceiver(async (receiver) => {
      receiver.handle(onlyFirstFails());
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, { url: receiver.url, ...HOLD, on_exhausted: "block" });
      const ids = await publishNumbered(tenant, 3);
      const lane = await laneWhen(tenant, endpoint.id, "blocked");
      expect(lane.heads).toMatchObject([{ delivery_id: ids[0], status: "dead_letter", depth: 2 }]);
      expect(await readDelivery(tenant, ids[0]!)).toMatchObject({ final_outcome: "held_too_long" });
      // Those behind it have held up nobody.
      await sleep(15_500);
      for (const id of ids.slice(1)) expect(await readDelivery(tenant, id)).toMatchObject({ status: "pending" });
      expect(receiver.received.map(numberOf)).toEqual([0]);
    }));

  test("does not run during a pause", () =>
    withReceiver(async (receiver) => {
      receiver.handle(onlyFirstFails());
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, { url: receiver.url, ...HOLD });
      const [id] = await publishNumbered(tenant, 2);
      await failedOnce(tenant, id!);
      await act(tenant, endpoint.id, "pause");
      await sleep(15_500);
      expect(await readDelivery(tenant, id!)).toMatchObject({ status: "pending" });
      const resumedAt = Date.now();
      await act(tenant, endpoint.id, "resume");
      const head = await terminalDelivery(tenant, id!);
      expect(head).toMatchObject({ final_outcome: "held_too_long" });
      expect(at(head.terminal_at) - resumedAt).toBeGreaterThanOrEqual(15_000);
    }));

  test("set on a head that waits already ends it in time", () =>
    withReceiver(async (receiver) => {
      receiver.handle(onlyFirstFails());
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, { url: receiver.url, ...HOLD, max_head_hold_seconds: null });
      const ids = await publishNumbered(tenant, 2);
      await failedOnce(tenant, ids[0]!);
      await patchEndpoint(tenant, endpoint.id, { max_head_hold_seconds: 1 });
      expect(await terminalDelivery(tenant, ids[0]!)).toMatchObject({ final_outcome: "held_too_long" });
      await eventually(async () => receiver.received.length === 2);
    }));
});
