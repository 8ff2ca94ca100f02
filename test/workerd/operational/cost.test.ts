import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { countingEnv, createCost } from "../support/counting.ts";
import { attempt, deliverDeps } from "../support/worker.ts";
import { createToldScene } from "./support.ts";

beforeEach(() => {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("no", { status: 400 }));
});
afterEach(() => vi.restoreAllMocks());

/** A first attempt that is rejected, and all that comes of it. */
async function costOfDeath(pattern: string | null) {
  const scene = await createToldScene(pattern);
  const delivery = await scene.publishOne();
  const cost = createCost();
  const deps = deliverDeps(scene.tenant, scene.context, countingEnv(env as Env, cost));
  await attempt(deps, scene.context, delivery.call(1));
  expect(await delivery.read()).toMatchObject({ status: "dead_letter" });
  expect(await scene.notes()).toEqual([]);
  return { cost, told: (await scene.told()).length };
}

test("a dead letter that nobody asks to be told of costs no row and no trip more", async () => {
  const nobody = await costOfDeath(null);
  const others = await costOfDeath("hooklane.endpoint.disabled");
  expect([nobody.told, others.told]).toEqual([0, 0]);
  // Claim 2, attempt 1, its close 2, the dead letter and its three indexes 4, and the failure that starts the endpoint's clock.
  expect(nobody.cost).toMatchObject({ rowsWritten: 10, ledgerTrips: 3, classA: 0 });
  expect(others.cost).toMatchObject({ rowsWritten: 10, ledgerTrips: 3, classA: 0 });
});

test("one that is told of costs eight rows more: its note and that note's end, the source once, and an event to one endpoint", async () => {
  const nobody = await costOfDeath(null);
  const one = await costOfDeath("hooklane.delivery.dead_letter");
  expect(one.told).toBe(1);
  expect(one.cost.rowsWritten).toBe(nobody.cost.rowsWritten + 8);
  expect(one.cost).toMatchObject({ classA: 1, queueMessages: 1 });
});
