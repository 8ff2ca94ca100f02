import { expect, test } from "vitest";
import { createEndpoint, createTenant, publish, terminalDelivery } from "./support/client.ts";
import {
  act,
  answering,
  answeringAfter,
  holding,
  keyOf,
  laneWhen,
  numberOf,
  publishNumbered,
  QUICK_RETRY,
  range,
  readLane,
  SLOW_RETRY,
} from "./support/lanes.ts";
import { withReceiver, type Received } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

test("strict: fifty events arrive in order though the first fails three times and the seventh once, one at a time", () =>
  withReceiver((receiver) =>
    withReceiver(async (other) => {
      const failures = new Map([
        [0, 3],
        [6, 1],
      ]);
      let inFlight = 0;
      let most = 0;
      const answer = answering((n, times) => (times <= (failures.get(n) ?? 0) ? 503 : 200));
      receiver.handle((request, response, raw) => {
        most = Math.max(most, ++inFlight);
        setTimeout(() => {
          inFlight--;
          void answer(request, response, raw);
        }, 5);
      });
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url, ordering_mode: "strict", retry_policy: QUICK_RETRY });
      await createEndpoint(tenant, { url: other.url });
      await publishNumbered(tenant, 50);
      await other.waitFor(50);
      await receiver.waitFor(54);
      expect(receiver.received.map(numberOf)).toEqual([0, 0, 0, 0, 1, 2, 3, 4, 5, 6, ...range(44, 6)]);
      expect(most).toBe(1);
    }),
  ));

test("a strict lane whose head fails holds up no other endpoint", () =>
  withReceiver((stuck) =>
    withReceiver(async (other) => {
      stuck.handle((_, response) => void response.writeHead(500).end());
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: stuck.url, ordering_mode: "strict", retry_policy: SLOW_RETRY });
      await createEndpoint(tenant, { url: other.url, ordering_mode: "strict" });
      await publishNumbered(tenant, 20);
      await other.waitFor(20);
      expect(other.received.map(numberOf)).toEqual(range(20));
      expect(stuck.received.map(numberOf)).toEqual([0]);
    }),
  ));

test("keyed: a key that fails and one that hangs hold up nobody else; each key keeps its order", () =>
  withReceiver(async (receiver) => {
    receiver.handle((request, response) => {
      if (keyOf(request) === "hangs") return;
      response.writeHead(keyOf(request) === "fails" ? 500 : 200).end();
    });
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, {
      url: receiver.url,
      ordering_mode: "keyed",
      concurrency_cap: 20,
      timeout_ms: 30_000,
      retry_policy: SLOW_RETRY,
    });
    const keys = ["hangs", "fails", ...range(8).map((i) => `key-${i}`)];
    await publishNumbered(tenant, 100, { keyOf: (n) => keys[n % 10] });
    // One request of each stuck key, and ten of every other.
    await receiver.waitFor(82);
    const byKey = Map.groupBy(receiver.received, keyOf);
    for (const [i, key] of keys.entries()) {
      const expected = i < 2 ? [i] : range(10).map((round) => round * 10 + i);
      expect(byKey.get(key)!.map(numberOf)).toEqual(expected);
    }
  }));

test("keyless events of a keyed endpoint flow beside a key that is stuck, and beside each other", () =>
  withReceiver(async (receiver) => {
    // One of them fails as well: they do not wait for each other either.
    const fails = (request: Received) => keyOf(request) !== undefined || numberOf(request) === 1;
    receiver.handle((request, response) => void response.writeHead(fails(request) ? 500 : 200).end());
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, ordering_mode: "keyed", retry_policy: SLOW_RETRY });
    await publishNumbered(tenant, 100, { keyOf: (n) => (n % 2 === 0 ? "stuck" : undefined) });
    await receiver.waitFor(51);
    const [keyed, keyless] = [true, false].map((has) => receiver.received.filter((r) => !!keyOf(r) === has));
    expect(keyed!.map(numberOf)).toEqual([0]);
    expect(keyless!.map(numberOf).toSorted((a, b) => a - b)).toEqual(range(50).map((i) => 2 * i + 1));
  }));

test("a strict endpoint whose receiver takes 50 ms gets its events in order, about as fast as it can answer", () =>
  withReceiver(async (receiver) => {
    const answer = answeringAfter(50);
    receiver.handle(answer);
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, ordering_mode: "strict" });
    await publishNumbered(tenant, 60);
    await receiver.waitFor(60);
    const seconds = (receiver.received.at(-1)!.at - receiver.received[0]!.at) / 1000;
    console.log(`strict lane, 50 ms receiver: ${(59 / seconds).toFixed(1)} a second`);
    expect(receiver.received.map(numberOf)).toEqual(range(60));
    expect(answer.most).toBe(1);
  }));

const STRICT = { mode: "strict", quarantined_at: null };

test("the view of a lane says in each state what stands at its head and how much is open", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, {
      url: receiver.url,
      ordering_mode: "strict",
      on_exhausted: "block",
      retry_policy: { ...SLOW_RETRY, max_attempts: 2 },
    });
    expect(await readLane(tenant, endpoint.id)).toEqual({ ...STRICT, state: "idle", depth: 0, heads: [] });

    const gate = holding();
    receiver.handle(gate.handler);
    const [first, second] = [await publish(tenant), await publish(tenant)];
    await receiver.waitFor(1);
    const head = {
      ordering_key: null,
      delivery_id: first.deliveries[0].id,
      event_id: first.id,
      status: "processing",
      attempt_count: 1,
      scheduled_at: expect.any(String),
      blocked_since: null,
      next_attempt_at: null,
      last_outcome: { status_code: null, error_class: null },
      depth: 2,
    };
    expect(await readLane(tenant, endpoint.id)).toEqual({ ...STRICT, state: "running", depth: 2, heads: [head] });
    gate.letGo();
    await receiver.waitFor(2);
    await terminalDelivery(tenant, second.deliveries[0].id);

    receiver.handle((_, response) => void response.writeHead(503).end());
    const [third] = [await publish(tenant), await publish(tenant)];
    const waitingHead = {
      ...head,
      delivery_id: third.deliveries[0].id,
      event_id: third.id,
      status: "pending",
      next_attempt_at: expect.any(String),
      last_outcome: { status_code: 503, error_class: "http_5xx" },
    };
    const waiting = { ...STRICT, depth: 2, heads: [waitingHead] };
    expect(await laneWhen(tenant, endpoint.id, "waiting")).toEqual({ ...waiting, state: "waiting" });
    await act(tenant, endpoint.id, "pause");
    expect(await readLane(tenant, endpoint.id)).toEqual({ ...waiting, state: "paused" });
    await act(tenant, endpoint.id, "disable");
    expect(await readLane(tenant, endpoint.id)).toEqual({ ...waiting, state: "disabled" });
    await act(tenant, endpoint.id, "resume");
    await act(tenant, endpoint.id, "enable");

    await tenant.admin.post(`/v1/deliveries/${third.deliveries[0].id}/retry`);
    const dead = await terminalDelivery(tenant, third.deliveries[0].id);
    expect(await laneWhen(tenant, endpoint.id, "blocked")).toEqual({
      ...STRICT,
      state: "blocked",
      depth: 1,
      heads: [
        {
          ...waitingHead,
          status: "dead_letter",
          attempt_count: 2,
          blocked_since: dead.terminal_at,
          next_attempt_at: null,
          // It does not count itself: it is open no more.
          depth: 1,
        },
      ],
    });
  }));

test("a keyed lane shows one head a key, oldest first, with what stands behind each", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(500).end());
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, {
      url: receiver.url,
      ordering_mode: "keyed",
      retry_policy: SLOW_RETRY,
    });
    const keys = ["pear", "apple", undefined, "pear", "fig"];
    const events = [];
    for (const ordering_key of keys) events.push(await publish(tenant, { ordering_key }));
    await receiver.waitFor(4);
    const lane = await laneWhen(tenant, endpoint.id, "waiting");
    expect(lane).toMatchObject({ mode: "keyed", depth: 5 });
    expect(lane.heads.map(({ ordering_key, event_id, depth }: any) => [ordering_key, event_id, depth])).toEqual([
      ["pear", events[0].id, 2],
      ["apple", events[1].id, 1],
      [null, events[2].id, 1],
      ["fig", events[4].id, 1],
    ]);
  }));
