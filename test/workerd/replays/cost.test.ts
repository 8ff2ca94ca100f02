import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { goOnWithReplays } from "../../../src/app/replay/go-on.ts";
import { composeWatch } from "../../../src/compose.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createReplayFixture } from "./support.ts";

const names = (count: number) => Array.from({ length: count }, (_, i) => `/${i}`);

/** What a step costs that replays `count` dead letters at once. */
async function costOfStep(endpoint: Record<string, unknown>, count: number) {
  const scene = await createReplayFixture(endpoint);
  await scene.endAll(names(count + 50));
  const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId } });
  const cost = createCost();
  const counted = composeWatch(countingEnv(env as Env, cost), scene.context.context, scene.tenant.shard);
  const parts = await scene.watch.listDueReplayParts(scene.now(), 9);
  let rounds = 0;
  await goOnWithReplays({
    ...scene.watch,
    takeReplayStep: counted.takeReplayStep,
    walkReplayable: counted.walkReplayable,
    listDueReplayParts: async () => (rounds++ === 0 ? parts : []),
  });
  expect(await scene.read(id)).toMatchObject({ replayed: count });
  return cost;
}

test.each([
  ["queues", {}],
  ["a strict lane", { ordering_mode: "strict" }],
])("a replay by %s writes six rows before its attempt, and few of its job's", async (_, endpoint) => {
  const { rowsWritten, rowsRead, ledgerTrips } = await costOfStep(endpoint, 100);
  expect(ledgerTrips).toBe(2);
  expect(rowsWritten).toBeLessThanOrEqual(610);
  expect(rowsRead).toBeLessThanOrEqual(6_000);
});
