import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createInFlight, type InFlight } from "../../../src/app/deliver/in-flight.ts";

const MAX_REQUESTS = 256;
const MAX_REQUESTS_PER_TENANT = 64;
const MAX_REQUESTS_PER_ENDPOINT = 32;
const MAX_UNANSWERED = 8;
const MIB = 1024 * 1024;
const MAX_BYTES = 32 * MIB;
const NOW = 1_000_000;
const URL = "https://consumer.example/hook";

const sizes = (count: number, size: number) => Array.from({ length: count }, () => size);

/** An endpoint of a tenant of its own. */
const at = (endpointId: string) => ({
  tenantId: endpointId.replace("ep_", "ten_"),
  endpointId,
  endpoint: { url: URL },
});

/** An endpoint that answers: one of its requests was answered just now, and one is under way. */
function answering(inFlight: InFlight, place: ReturnType<typeof at>) {
  inFlight.begin(place, NOW);
  inFlight.begin(place, NOW);
  inFlight.end(place, NOW, NOW);
  return place;
}

const first = (inFlight: InFlight, place: ReturnType<typeof at>, wanted: number[]) =>
  inFlight.reserve(place, wanted, false, NOW);
const again = (inFlight: InFlight, place: ReturnType<typeof at>, wanted: number[]) =>
  inFlight.reserve(place, wanted, true, NOW);

/** Fills every place with empty payloads of as many endpoints as it takes. */
function fill(inFlight: InFlight): number {
  let reserved = 0;
  for (let n = 0; n < 20; n++) reserved += first(inFlight, answering(inFlight, at(`ep_${n}`)), sizes(100, 0));
  return reserved;
}

describe("room", () => {
  test("is for eight requests of an endpoint that has not answered lately, and for 32 of one that has", () => {
    const inFlight = createInFlight();
    expect(first(inFlight, at("ep_a"), sizes(40, 10))).toBe(MAX_UNANSWERED);
    expect(first(inFlight, at("ep_a"), [10])).toBe(0);
    answering(inFlight, at("ep_a"));
    expect(first(inFlight, at("ep_a"), sizes(40, 10))).toBe(MAX_REQUESTS_PER_ENDPOINT - MAX_UNANSWERED);
    expect(first(inFlight, at("ep_b"), [10])).toBe(1);
  });

  test("is as little again when an endpoint has fallen silent", () => {
    const inFlight = createInFlight();
    answering(inFlight, at("ep_a"));
    expect(inFlight.reserve(at("ep_a"), sizes(40, 0), false, NOW + 1_001)).toBe(MAX_UNANSWERED);
  });

  test("is for 64 requests of one tenant, however many endpoints ask", () => {
    const inFlight = createInFlight();
    const ofTenant = (endpointId: string) => answering(inFlight, { ...at(endpointId), tenantId: "ten_a" });
    expect(first(inFlight, ofTenant("ep_a"), sizes(40, 10))).toBe(32);
    expect(first(inFlight, ofTenant("ep_b"), sizes(40, 10))).toBe(32);
    expect(first(inFlight, ofTenant("ep_c"), [10])).toBe(0);
    expect(first(inFlight, at("ep_d"), [10])).toBe(1);
    inFlight.release({ ...at("ep_a"), tenantId: "ten_a" }, 10, false);
    expect(first(inFlight, ofTenant("ep_c"), [10, 10])).toBe(1);
  });

  test("is left for a healthy endpoint by seven of its tenant that hang", () => {
    const inFlight = createInFlight();
    for (let n = 0; n < 7; n++) first(inFlight, { ...at(`ep_${n}`), tenantId: "ten_a" }, sizes(100, 0));
    expect(first(inFlight, { ...at("ep_healthy"), tenantId: "ten_a" }, sizes(8, 0))).toBe(8);
  });

  test("is for 256 requests in all", () => {
    const inFlight = createInFlight();
    expect(fill(inFlight)).toBe(MAX_REQUESTS);
    expect(first(inFlight, at("ep_other"), [0])).toBe(0);
  });

  test("is for 32 MiB of payloads, to the byte", () => {
    const inFlight = createInFlight();
    expect(first(inFlight, at("ep_a"), [MAX_BYTES - 5, 5, 1])).toBe(2);
    expect(first(inFlight, at("ep_b"), [1])).toBe(0);
    expect(first(inFlight, at("ep_b"), [0])).toBe(1);
  });

  test("is given in order: a large payload is not overtaken by a small one behind it", () => {
    const inFlight = createInFlight();
    expect(first(inFlight, at("ep_a"), [30 * MIB, 4 * MIB, 1])).toBe(1);
  });

  test("is there for one payload of any size when nothing else is under way, and only then", () => {
    const inFlight = createInFlight();
    expect(first(inFlight, at("ep_a"), [MAX_BYTES + 1])).toBe(1);
    expect(first(inFlight, at("ep_b"), [0])).toBe(0);
    inFlight.release(at("ep_a"), MAX_BYTES + 1, false);
    expect(first(inFlight, at("ep_b"), [0, MAX_BYTES + 1])).toBe(1);
  });

  test("is restored by release, to its endpoint and to all", () => {
    const inFlight = createInFlight();
    fill(inFlight);
    inFlight.release(at("ep_0"), 0, false);
    expect(first(inFlight, at("ep_1"), [0])).toBe(0);
    expect(first(inFlight, at("ep_0"), sizes(5, 0))).toBe(1);
  });
});

describe("retries have half of the room", () => {
  test("of an endpoint, whether it answers or not", () => {
    const inFlight = createInFlight();
    expect(again(inFlight, at("ep_a"), sizes(40, 0))).toBe(MAX_UNANSWERED / 2);
    expect(first(inFlight, at("ep_a"), sizes(40, 0))).toBe(MAX_UNANSWERED / 2);
    const place = answering(inFlight, at("ep_b"));
    expect(again(inFlight, place, sizes(40, 0))).toBe(MAX_REQUESTS_PER_ENDPOINT / 2);
    expect(first(inFlight, place, sizes(40, 0))).toBe(MAX_REQUESTS_PER_ENDPOINT / 2);
  });

  test("of a tenant, of all, and of the payloads", () => {
    const inFlight = createInFlight();
    const ofTenant = (n: number) => answering(inFlight, { ...at(`ep_${n}`), tenantId: "ten_a" });
    expect([1, 2, 3].map((n) => again(inFlight, ofTenant(n), sizes(40, 0)))).toEqual([16, 16, 0]);
    expect([1, 2].map((n) => first(inFlight, ofTenant(n), sizes(40, 0)))).toEqual([16, 16]);

    const full = createInFlight();
    let reserved = 0;
    for (let n = 0; n < 20; n++) reserved += again(full, answering(full, at(`ep_${n}`)), sizes(40, 0));
    expect(reserved).toBe(MAX_REQUESTS / 2);

    const heavy = createInFlight();
    expect(again(heavy, at("ep_a"), [16 * MIB, 1])).toBe(1);
    expect(first(heavy, at("ep_b"), [16 * MIB])).toBe(1);
  });

  test("and none while first attempts of their endpoint wait", () => {
    const inFlight = createInFlight();
    inFlight.countWaiting(at("ep_a"), 1);
    expect(again(inFlight, at("ep_a"), [0])).toBe(0);
    expect(again(inFlight, at("ep_b"), [0])).toBe(1);
    inFlight.countWaiting(at("ep_a"), -1);
    expect(again(inFlight, at("ep_a"), [0])).toBe(1);
  });
});

describe("what is known of an endpoint", () => {
  test("is when its requests were begun and when one was last answered, until none is under way", () => {
    const inFlight = createInFlight();
    const place = at("ep_a");
    expect(inFlight.standingOf(place)).toBeNull();
    for (const begunAt of [1, 2, 3]) inFlight.begin(place, begunAt);
    inFlight.end(place, 2, null);
    expect(inFlight.standingOf(place)).toEqual({ startedAt: [1, 3], answeredAt: null });
    inFlight.end(place, 1, 40);
    expect(inFlight.standingOf(place)).toEqual({ startedAt: [3], answeredAt: 40 });
    inFlight.end(place, 3, null);
    expect(inFlight.standingOf(place)).toBeNull();
  });
});

test("whatever is reserved and released, no bound is passed, and no room is kept back or lost", () => {
  const step = fc.record({
    endpointId: fc.integer({ min: 0, max: 11 }).map((n) => `ep_${n}`),
    isRetry: fc.boolean(),
    wanted: fc.array(fc.oneof(fc.nat(2 * MIB), fc.constant(0)), { maxLength: 40 }),
    releases: fc.array(fc.nat(), { maxLength: 30 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const inFlight = createInFlight();
      const place = (endpointId: string) => ({ ...at(endpointId), tenantId: `ten_${Number(endpointId.slice(3)) % 3}` });
      for (let n = 0; n < 12; n++) answering(inFlight, place(`ep_${n}`));
      let held: { endpointId: string; size: number; isRetry: boolean }[] = [];
      const count = (of: (one: (typeof held)[number]) => boolean) => held.filter(of).length;
      const bytes = () => held.reduce((sum, { size }) => sum + size, 0);
      for (const { endpointId, isRetry, wanted, releases } of steps) {
        const { tenantId } = place(endpointId);
        const reserved = inFlight.reserve(place(endpointId), wanted, isRetry, NOW);
        held.push(...wanted.slice(0, reserved).map((size) => ({ endpointId, size, isRetry })));
        const ofEndpoint = count((one) => one.endpointId === endpointId);
        const ofTenant = count((one) => place(one.endpointId).tenantId === tenantId);
        expect(held.length).toBeLessThanOrEqual(MAX_REQUESTS);
        expect(ofTenant).toBeLessThanOrEqual(MAX_REQUESTS_PER_TENANT);
        expect(ofEndpoint).toBeLessThanOrEqual(MAX_REQUESTS_PER_ENDPOINT);
        expect(count((one) => one.endpointId === endpointId && one.isRetry)).toBeLessThanOrEqual(16);
        expect(bytes()).toBeLessThanOrEqual(MAX_BYTES);
        const refused = wanted[reserved];
        if (refused !== undefined && !isRetry) {
          const isFull = ofTenant === MAX_REQUESTS_PER_TENANT || ofEndpoint === MAX_REQUESTS_PER_ENDPOINT;
          expect(isFull || bytes() + refused > MAX_BYTES).toBe(true);
        }
        for (const pick of releases) {
          const [released] = held.splice(pick % Math.max(held.length, 1), 1);
          if (released) inFlight.release(place(released.endpointId), released.size, released.isRetry);
        }
      }
      for (const { endpointId, size, isRetry } of held) inFlight.release(place(endpointId), size, isRetry);
      held = [];
      expect(inFlight.reserve(place("ep_0"), sizes(40, MIB), false, NOW)).toBe(MAX_REQUESTS_PER_ENDPOINT);
    }),
    { seed: 20_282, numRuns: 200 },
  );
});
