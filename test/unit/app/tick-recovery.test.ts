import { describe, expect, test } from "vitest";
import { firstEventIdAt } from "../../../src/core/ids.ts";
import { createWatchState, tick, type WatchDeps } from "../../../src/app/watch/tick.ts";
import { attemptReport, T0 } from "./support/report.ts";
import { dueDelivery, quietScene } from "./support/watch.ts";

const PAGE = 500;
const MINUTE_MS = 60_000;

type Closing = Parameters<WatchDeps["closeAttempts"]>[0][number];

describe("leases that ran out", () => {
  /** A ledger with one lease that ended `endedMsAgo`; reports may be on their way to it for `waitMs` more. */
  async function recovered(endedMsAgo: number, waitMs: number): Promise<Closing[]> {
    const closings: Closing[] = [];
    const lease = attemptReport({ attemptNumber: 3, token: "token-3", requestedAt: T0 - endedMsAgo - 45_000 });
    const { deps } = quietScene({
      reportsUntil: async () => T0 + waitMs,
      listExpiredLeases: async (endedBy) => (T0 - endedMsAgo <= endedBy ? [lease] : []),
      closeAttempts: async (batch) => void closings.push(...batch),
    });
    await tick(deps, createWatchState(T0));
    return closings;
  }

  test("are closed as abandoned under their own token, and the delivery is due at once", async () => {
    const [closing] = await recovered(0, 0);
    expect(closing).toMatchObject({
      attemptNumber: 3,
      token: "token-3",
      attempt: { outcomeClass: "unreachable", errorClass: "abandoned", statusCode: null, respondedAt: T0 },
      delivery: { status: "pending", nextAttemptAt: T0, failureCount: 0, relayFaultCount: 1 },
    });
    // What the claim knew of an answer is nothing.
    expect(closing!.attempt).toMatchObject({
      responseBodySha256: null,
      responseHeadersJson: null,
      partnerRequestId: null,
    });
  });

  test("wait for reports on their way to the ledger, ten minutes and no longer", async () => {
    expect(await recovered(10 * MINUTE_MS - 1, 1)).toEqual([]);
    expect(await recovered(10 * MINUTE_MS, 1)).toHaveLength(1);
    expect(await recovered(10 * MINUTE_MS - 1, 0)).toHaveLength(1);
  });

  test("of a ledger that hangs at each of them keep a tick from the rest for half a minute, and the next goes on", async () => {
    let now = T0;
    let tried = 0;
    let looksAtHolds = 0;
    const { deps } = quietScene({
      now: () => now,
      listExpiredLeases: async () => Array.from({ length: PAGE }, (_, n) => attemptReport({ token: `token-${n}` })),
      listEndedHolds: async () => (looksAtHolds++, []),
      async closeAttempts() {
        tried++;
        now += 10_000;
        throw new Error("no answer within 10000 ms");
      },
    });
    const state = createWatchState(T0);
    expect(await tick(deps, state)).not.toBeNull();
    expect({ tried, looksAtHolds }).toEqual({ tried: 4, looksAtHolds: 1 });
    await tick(deps, state);
    expect({ tried, looksAtHolds }).toEqual({ tried: 8, looksAtHolds: 2 });
  });
});

describe("holds", () => {
  test("that have ended end their deliveries as expired", async () => {
    const ends: object[] = [];
    const held = [dueDelivery(1, 0), dueDelivery(2, 0)];
    const { deps } = quietScene({
      listEndedHolds: async () => held,
      endDeliveries: async (batch, now) => void ends.push({ batch, now }),
    });
    await tick(deps, createWatchState(T0));
    const batch = held.map((ref) => ({ ...ref, status: "expired", finalOutcome: "expired" }));
    expect(ends).toEqual([{ batch, now: T0 }]);
  });

  test("that a half-done change left are released to the last part, page by page and then from the start", async () => {
    const asked: unknown[] = [];
    const stop: [number, string, string, string, number] = [77, "ten_1", "evt_1", "ep_a", 0];
    const pages = [
      { endpoints: [{ tenantId: "ten_1", endpointId: "ep_a" }], next: stop },
      { endpoints: [{ tenantId: "ten_2", endpointId: "ep_b" }], next: null },
    ];
    const released: string[] = [];
    const rung: number[] = [];
    const parts = [[{ ...dueDelivery(1, 0), attemptCount: 2 }], [dueDelivery(2, 0)], []];
    const { deps } = quietScene({
      listStrandedHolds: async (after) => {
        asked.push(after);
        return pages.shift() ?? { endpoints: [], next: null };
      },
      releaseHeldPart: async (tenantId, endpointId) => {
        released.push(`${tenantId} ${endpointId}`);
        return parts.shift() ?? [];
      },
      ringLater: (calls) => void rung.push(...calls.map(({ attemptNumber }) => attemptNumber)),
    });
    const state = createWatchState(T0);
    for (let n = 0; n < 3; n++) await tick(deps, state);
    expect(asked).toEqual([null, stop, null]);
    expect(released).toEqual(["ten_1 ep_a", "ten_1 ep_a", "ten_1 ep_a", "ten_2 ep_b"]);
    expect(rung).toEqual([3, 1]);
  });
});

describe("expired events", () => {
  /** Every other one has expired; each payload object holds ten. */
  const ledger = Array.from({ length: PAGE + 7 }, (_, n) => ({
    tenantId: "ten_1",
    id: dueDelivery(n, 0).eventId,
    payloadRef: `30d/ten_1/object-${Math.floor(n / 10)}#${n % 10}`,
    expiresAt: n % 2 === 0 ? T0 : T0 + 1,
  }));

  test("are deleted, and no others, with the payload objects that this frees", async () => {
    const walked: string[] = [];
    const deleted: string[] = [];
    const objects: string[] = [];
    const { deps } = quietScene({
      walkOldEvents: async ([, afterId], beforeId, limit) => {
        walked.push(afterId);
        expect(beforeId).toBe(firstEventIdAt(T0 - 30 * 86_400_000));
        const events = ledger.filter(({ id }) => id > afterId).slice(0, limit);
        return { events, next: events.length === limit ? ["ten_1", events.at(-1)!.id] : null };
      },
      deleteEvents: async (events) => {
        deleted.push(...events.map(({ id }) => id));
        return { freedObjects: ["an object"], hasMore: false };
      },
      deletePayloads: async (keys) => void objects.push(...keys),
    });
    const state = createWatchState(T0);
    // More of them may follow, so it goes on soon.
    expect(await tick(deps, state)).toBe(T0 + 100);
    expect(objects).toEqual(["an object"]);
    await tick(deps, state);
    expect(deleted).toEqual(ledger.filter(({ expiresAt }) => expiresAt <= T0).map(({ id }) => id));
    await tick(deps, state);
    expect(walked).toEqual(["", ledger[PAGE - 1]!.id, ""]);
  });

  test("with more rows than go at once are gone on with before others are looked at, and soon", async () => {
    const walked: string[] = [];
    let left = 3;
    const { deps } = quietScene({
      walkOldEvents: async ([, afterId]) => {
        walked.push(afterId);
        return { events: ledger.slice(0, 1), next: null };
      },
      deleteEvents: async (_events, maxRows) => {
        expect(maxRows).toBe(5_000);
        return { freedObjects: [], hasMore: --left > 0 };
      },
    });
    const state = createWatchState(T0);
    expect(await tick(deps, state)).toBe(T0 + 100);
    expect(await tick(deps, state)).toBe(T0 + 100);
    expect(await tick(deps, state)).toBeNull();
    expect(walked).toEqual(["", "", ""]);
  });

  test("whose deletion the ledger refuses keep their payloads and are walked again", async () => {
    const walked: string[] = [];
    const { deps, called } = quietScene({
      walkOldEvents: async ([, afterId]) => {
        walked.push(afterId);
        return { events: ledger.slice(0, PAGE), next: ["ten_1", ledger[PAGE - 1]!.id] };
      },
      deleteEvents: () => Promise.reject(new Error("away")),
    });
    const state = createWatchState(T0);
    await tick(deps, state);
    await tick(deps, state);
    expect(called).not.toContain("deletePayloads");
    expect(walked).toEqual(["", ""]);
  });
});
