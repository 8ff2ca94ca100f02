import { expect, test } from "vitest";
import type { LoadedDelivery } from "../../../src/app/deliver/prepare.ts";
import { stillClaimed, type StillClaimedDeps } from "../../../src/app/deliver/still-claimed.ts";

const claim = {
  tenantId: "ten_1",
  eventId: "evt_1",
  endpointId: "ep_1",
  replayNo: 0,
  attemptNumber: 1,
  token: "t",
  endpointRevision: 3,
};

async function ask(ageMs: number, found: { token: string; revision?: number; pausedAt?: number } | Error) {
  const asked: unknown[] = [];
  const givenBack: unknown[] = [];
  const deps: StillClaimedDeps = {
    now: () => ageMs,
    async loadDeliveries(refs) {
      asked.push(...refs);
      if (found instanceof Error) throw found;
      const { token, revision = 3, pausedAt = null } = found;
      return { deliveries: [{ token, endpoint: { revision, pausedAt } } as LoadedDelivery] };
    },
    giveBack: async (one) => void givenBack.push(one),
    logFault: () => {},
  };
  return { isStill: (await stillClaimed(deps, [claim], 0)).has(claim), asked, givenBack };
}

test("a claim that was answered at once costs no trip", async () => {
  expect(await ask(1_000, new Error("not asked"))).toEqual({ isStill: true, asked: [], givenBack: [] });
});

test("a claim whose answer was late is sent when the ledger says that nothing has changed", async () => {
  expect(await ask(1_001, { token: "t" })).toEqual({ isStill: true, asked: [claim], givenBack: [] });
});

test.each([
  ["was taken over", { token: "u" }],
  ["has another endpoint by now", { token: "t", revision: 4 }],
  ["was paused, or its tenant suspended", { token: "t", pausedAt: 1 }],
  ["cannot be asked about", new Error("away")],
])("a claim whose answer was late and that %s is given back", async (_, found) => {
  expect(await ask(1_001, found)).toEqual({ isStill: false, asked: [claim], givenBack: [claim] });
});

test("a claim whose answer took too much of its lease is given back without asking", async () => {
  expect(await ask(10_001, { token: "t" })).toEqual({ isStill: false, asked: [], givenBack: [claim] });
});

test("a claim that cannot be given back is left to its lease", async () => {
  const deps: StillClaimedDeps = {
    now: () => 20_000,
    loadDeliveries: async () => ({ deliveries: [] }),
    giveBack: () => Promise.reject(new Error("away")),
    logFault: () => {},
  };
  expect((await stillClaimed(deps, [claim], 0)).size).toBe(0);
});
