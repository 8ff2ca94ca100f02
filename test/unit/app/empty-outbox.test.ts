import { expect, test } from "vitest";
import { emptyOutbox, type OutboxRuns } from "../../../src/app/operational/empty-outbox.ts";
import type { PublishOperationalDeps } from "../../../src/app/operational/publish-operational.ts";
import { emptyOutboxes } from "../../../src/app/watch/empty-outboxes.ts";

/** A relay whose outbox is looked into through `look`, which says what `listRaised` does. */
function scene(look: (n: number) => Promise<never[]>) {
  const clock = { now: 1_000_000 };
  const faults: unknown[] = [];
  let looks = 0;
  const runs: OutboxRuns = new Map();
  const deps = {
    now: () => clock.now,
    retentionDays: 30,
    listRaised: () => look(++looks),
    logFault: (_: string, error: unknown) => void faults.push(error),
  } as unknown as PublishOperationalDeps;
  return { clock, faults, runs, call: () => emptyOutbox(deps, runs, "ten_1"), looks: () => looks };
}

test("who comes while an outbox is being emptied has it looked through once more, and no second one begins", async () => {
  const first = Promise.withResolvers<never[]>();
  const relay = scene((n) => (n === 1 ? first.promise : Promise.resolve([])));
  const running = relay.call();
  await Promise.all([relay.call(), relay.call()]);
  expect(relay.looks()).toBe(1);
  first.resolve([]);
  await running;
  expect(relay.looks()).toBe(2);
  expect(relay.runs.size).toBe(0);
});

test("a run that died with its request keeps nobody from the outbox for long", async () => {
  const relay = scene((n) => (n === 1 ? new Promise(() => {}) : Promise.resolve([])));
  void relay.call();
  await relay.call();
  relay.clock.now += 60_000;
  await relay.call();
  expect(relay.looks()).toBe(2);
});

test("a store that is away is logged, and the next call looks again", async () => {
  const relay = scene((n) => (n === 1 ? Promise.reject(new Error("away")) : Promise.resolve([])));
  await relay.call();
  await relay.call();
  expect(relay.faults).toEqual([new Error("away")]);
  expect(relay.looks()).toBe(2);
});

test("the watchdog walks over all tenants with an outbox, and one that fails stops no other", async () => {
  const all = Array.from({ length: 70 }, (_, n) => `ten_${String(n).padStart(2, "0")}`);
  const published: string[] = [];
  const faults: unknown[] = [];
  const deps = {
    listRaisedTenants: async (after: string, limit: number) => all.filter((id) => id > after).slice(0, limit),
    publishRaised: async (tenantId: string) => {
      if (tenantId === "ten_03") throw new Error("away");
      published.push(tenantId);
      return false;
    },
    logFault: (_: string, error: unknown) => void faults.push(error),
  };
  const walk = { after: "" };
  expect(await emptyOutboxes(deps, walk)).toBe(true);
  expect(await emptyOutboxes(deps, walk)).toBe(false);
  expect(published).toEqual(all.filter((id) => id !== "ten_03"));
  expect(faults).toEqual([new Error("away")]);
  expect(walk).toEqual({ after: "" });
});

test("an outbox of which more is left is gone on with at once", async () => {
  const deps = {
    listRaisedTenants: async () => ["ten_1", "ten_2"],
    publishRaised: async (tenantId: string) => tenantId === "ten_1",
    logFault: () => {},
  };
  expect(await emptyOutboxes(deps, { after: "" })).toBe(true);
});
