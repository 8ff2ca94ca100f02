import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createInFlight, type InFlight } from "../../../src/app/deliver/in-flight.ts";

const MAX_REQUESTS = 256;
const MAX_REQUESTS_PER_ENDPOINT = 32;
const MIB = 1024 * 1024;
const MAX_BYTES = 32 * MIB;

const sizes = (count: number, size: number) => Array.from({ length: count }, () => size);

/** An endpoint of a tenant of its own. */
const at = (endpointId: string) => ({ tenantId: endpointId.replace("ep_", "ten_"), endpointId });

/** Fills every place with empty payloads of as many endpoints as it takes. */
function fill(inFlight: InFlight): number {
  let reserved = 0;
  for (let n = 0; n < 20; n++) reserved += inFlight.reserve(at(`ep_${n}`), sizes(100, 0));
  return reserved;
}

describe("room", () => {
  test("is for 32 requests of one endpoint, however many ask", () => {
    const inFlight = createInFlight();
    expect(inFlight.reserve(at("ep_a"), sizes(40, 10))).toBe(MAX_REQUESTS_PER_ENDPOINT);
    expect(inFlight.reserve(at("ep_a"), [10])).toBe(0);
    expect(inFlight.reserve(at("ep_b"), [10])).toBe(1);
  });

  test("is for 64 requests of one tenant, however many endpoints ask", () => {
    const inFlight = createInFlight();
    const ofTenant = (endpointId: string) => ({ tenantId: "ten_a", endpointId });
    expect(inFlight.reserve(ofTenant("ep_a"), sizes(40, 10))).toBe(32);
    expect(inFlight.reserve(ofTenant("ep_b"), sizes(40, 10))).toBe(32);
    expect(inFlight.reserve(ofTenant("ep_c"), [10])).toBe(0);
    expect(inFlight.reserve(at("ep_d"), [10])).toBe(1);
    inFlight.release(ofTenant("ep_a"), 10);
    expect(inFlight.reserve(ofTenant("ep_c"), [10, 10])).toBe(1);
  });

  test("is for 256 requests in all", () => {
    const inFlight = createInFlight();
    expect(fill(inFlight)).toBe(MAX_REQUESTS);
    expect(inFlight.reserve(at("ep_other"), [0])).toBe(0);
  });

  test("is for 32 MiB of payloads, to the byte", () => {
    const inFlight = createInFlight();
    expect(inFlight.reserve(at("ep_a"), [MAX_BYTES - 5, 5, 1])).toBe(2);
    expect(inFlight.reserve(at("ep_b"), [1])).toBe(0);
    expect(inFlight.reserve(at("ep_b"), [0])).toBe(1);
  });

  test("is given in order: a large payload is not overtaken by a small one behind it", () => {
    const inFlight = createInFlight();
    expect(inFlight.reserve(at("ep_a"), [30 * MIB, 4 * MIB, 1])).toBe(1);
  });

  test("is there for one payload of any size when nothing else is under way, and only then", () => {
    const inFlight = createInFlight();
    expect(inFlight.reserve(at("ep_a"), [MAX_BYTES + 1])).toBe(1);
    expect(inFlight.reserve(at("ep_b"), [0])).toBe(0);
    inFlight.release(at("ep_a"), MAX_BYTES + 1);
    expect(inFlight.reserve(at("ep_b"), [0, MAX_BYTES + 1])).toBe(1);
  });

  test("is restored by release, to its endpoint and to all", () => {
    const inFlight = createInFlight();
    fill(inFlight);
    inFlight.release(at("ep_0"), 0);
    expect(inFlight.reserve(at("ep_1"), [0])).toBe(0);
    expect(inFlight.reserve(at("ep_0"), sizes(5, 0))).toBe(1);
  });
});

test("whatever is reserved and released, no bound is passed, and no room is kept back or lost", () => {
  const step = fc.record({
    endpointId: fc.integer({ min: 0, max: 11 }).map((n) => `ep_${n}`),
    wanted: fc.array(fc.oneof(fc.nat(2 * MIB), fc.constant(0)), { maxLength: 40 }),
    releases: fc.array(fc.nat(), { maxLength: 30 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const inFlight = createInFlight();
      const held: { endpointId: string; size: number }[] = [];
      const bytes = () => held.reduce((sum, { size }) => sum + size, 0);
      const ofEndpoint = (id: string) => held.filter(({ endpointId }) => endpointId === id).length;
      for (const { endpointId, wanted, releases } of steps) {
        const reserved = inFlight.reserve(at(endpointId), wanted);
        held.push(...wanted.slice(0, reserved).map((size) => ({ endpointId, size })));
        expect(held.length).toBeLessThanOrEqual(MAX_REQUESTS);
        expect(ofEndpoint(endpointId)).toBeLessThanOrEqual(MAX_REQUESTS_PER_ENDPOINT);
        expect(bytes()).toBeLessThanOrEqual(MAX_BYTES);
        const refused = wanted[reserved];
        if (refused !== undefined) {
          const isFull = held.length === MAX_REQUESTS || ofEndpoint(endpointId) === MAX_REQUESTS_PER_ENDPOINT;
          expect(isFull || bytes() + refused > MAX_BYTES).toBe(true);
        }
        for (const pick of releases) {
          const [released] = held.splice(pick % Math.max(held.length, 1), 1);
          if (released) inFlight.release(at(released.endpointId), released.size);
        }
      }
      held.forEach(({ endpointId, size }) => inFlight.release(at(endpointId), size));
      expect(inFlight.reserve(at("ep_0"), sizes(40, MIB))).toBe(MAX_REQUESTS_PER_ENDPOINT);
    }),
    { seed: 20_282, numRuns: 200 },
  );
});
