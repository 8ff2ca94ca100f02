import { describe, expect, test } from "vitest";
import { expandFanOut, expandOverdue, type ExpandFanOutDeps } from "../../../src/app/publish/expand-fan-out.ts";
import { tick, createWatchState } from "../../../src/app/watch/tick.ts";
import { FAN_OUT_OVERDUE_MS, type FanOutPart } from "../../../src/core/fan-out.ts";
import { firstEventIdAt } from "../../../src/core/ids.ts";
import { T0 } from "./support/report.ts";
import { quietScene } from "./support/watch.ts";

type TenantPart = FanOutPart & { tenantId: string };

/** A ledger of open parts, three an event, each of one delivery named after it. */
function createLedger(events: number, acceptedAt = T0) {
  const open: TenantPart[] = Array.from({ length: events * 3 }, (_, n) => ({
    tenantId: "ten_1",
    eventId: firstEventIdAt(acceptedAt + Math.floor(n / 3)),
    part: n % 3,
    deliveries: [[`ep_${String(n).padStart(16, "0")}`, "sub_1", 1]],
  }));
  const expanded: TenantPart[] = [];
  const rung: string[] = [];
  const faults: string[] = [];
  const nextOf = ({ eventId }: { eventId: string }) => open.find((part) => part.eventId === eventId) ?? null;
  const deps: ExpandFanOutDeps = {
    now: () => T0,
    sleep: async () => {},
    findOpenPart: async (fanOut) => nextOf(fanOut),
    async expandPart(part) {
      const index = open.indexOf(part);
      if (index >= 0) expanded.push(...open.splice(index, 1));
      return nextOf(part);
    },
    listOpenParts: async (beforeId, limit) => open.filter(({ eventId }) => eventId < beforeId).slice(0, limit),
    announce: (calls) => void rung.push(...calls.map(({ deliveryId }) => deliveryId)),
    logFault: (what, error) => void faults.push(`${what}: ${String(error)}`),
  };
  return { deps, open, expanded, rung, faults, first: { tenantId: "ten_1", eventId: firstEventIdAt(acceptedAt) } };
}

test("parts are expanded in their order until none is open, each rung for after its batch", async () => {
  const ledger = createLedger(1);
  const order: string[] = [];
  await expandFanOut(
    {
      ...ledger.deps,
      async expandPart(part, now) {
        order.push(`part ${part.part}`);
        return ledger.deps.expandPart(part, now);
      },
      announce: () => void order.push("ring"),
    },
    ledger.first,
  );
  expect(order).toEqual(["part 0", "ring", "part 1", "ring", "part 2", "ring"]);
  expect(ledger.open).toEqual([]);
});

test("an event of which nothing is open costs one look", async () => {
  const ledger = createLedger(0);
  await expandFanOut(ledger.deps, ledger.first);
  expect(ledger.rung).toEqual([]);
});

test("a part whose answer was lost is done again, and rung for once", async () => {
  const ledger = createLedger(1);
  let calls = 0;
  await expandFanOut(
    {
      ...ledger.deps,
      async expandPart(part, now) {
        const next = await ledger.deps.expandPart(part, now);
        if (calls++ % 2 === 0) throw new Error("Network connection lost.");
        return next;
      },
    },
    ledger.first,
  );
  expect(ledger.expanded.map(({ part }) => part)).toEqual([0, 1, 2]);
  expect(ledger.rung).toHaveLength(3);
});

test("a ledger that refuses for good is the caller's to hear of, and what was expanded before has been rung for", async () => {
  const ledger = createLedger(1);
  const expanding = expandFanOut(
    {
      ...ledger.deps,
      async expandPart(part, now) {
        if (part.part === 1) throw new Error("D1 is away");
        return ledger.deps.expandPart(part, now);
      },
    },
    ledger.first,
  );
  await expect(expanding).rejects.toThrow("D1 is away");
  expect(ledger.rung).toHaveLength(1);
});

describe("the watchdog", () => {
  test("leaves a fan-out alone until it is overdue", async () => {
    const ledger = createLedger(1);
    expect(await expandOverdue(ledger.deps, T0 + FAN_OUT_OVERDUE_MS)).toBe(false);
    expect(ledger.expanded).toEqual([]);
    await expandOverdue(ledger.deps, T0 + FAN_OUT_OVERDUE_MS + 1);
    expect(ledger.expanded).toHaveLength(3);
  });

  test("expands five parts a tick, oldest first, and says that there may be more", async () => {
    const ledger = createLedger(3);
    const late = T0 + 2 * FAN_OUT_OVERDUE_MS;
    expect(await expandOverdue(ledger.deps, late)).toBe(true);
    expect(ledger.expanded.map(({ part }) => part)).toEqual([0, 1, 2, 0, 1]);
    expect(await expandOverdue(ledger.deps, late)).toBe(false);
    expect(ledger.open).toEqual([]);
  });

  test("goes on behind a part that cannot be expanded", async () => {
    const ledger = createLedger(1);
    const refusing = {
      ...ledger.deps,
      async expandPart(part: TenantPart, now: number) {
        if (part.part === 0) throw new Error("no");
        return ledger.deps.expandPart(part, now);
      },
    };
    expect(await expandOverdue(refusing, T0 + 2 * FAN_OUT_OVERDUE_MS)).toBe(false);
    expect(ledger.open.map(({ part }) => part)).toEqual([0]);
    expect(ledger.faults).toEqual(["expand a fan-out: Error: no"]);
  });

  test("ticks again at once while a full page was open, and sees to the rest of its work", async () => {
    const ledger = createLedger(2);
    const { deps, clock, called } = quietScene({
      listOpenParts: ledger.deps.listOpenParts,
      expandPart: ledger.deps.expandPart,
    });
    clock.now = T0 + 2 * FAN_OUT_OVERDUE_MS;
    const state = createWatchState(clock.now);
    expect(await tick(deps, state)).toBe(clock.now + 100);
    expect(await tick(deps, state)).toBeNull();
    expect(ledger.open).toEqual([]);
    expect(called).toContain("listExpiredLeases");
  });
});
