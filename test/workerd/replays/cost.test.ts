import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { goOnWithReplays } from "../../../src/app/replay/go-on.ts";
import { composeShard, composeWatch } from "../../../src/compose.ts";
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
])("a replay by %s writes seven rows before its attempt, and few of its job's", async (_, endpoint) => {
  const { rowsWritten, rowsRead, ledgerTrips } = await costOfStep(endpoint, 100);
  expect(ledgerTrips).toBe(2);
  expect(rowsWritten).toBeLessThanOrEqual(710);
  expect(rowsRead).toBeLessThanOrEqual(6_000);
});

test("what it reads does not grow with what went well", async () => {
  const scene = await createReplayFixture();
  const reads = async () => {
    const cost = createCost();
    const bindings = countingEnv(env as Env, cost);
    await scene.endAll(names(20));
    const { id } = await scene.ask({ filter: { endpoint_id: scene.endpointId }, dry_run: true });
    const counted = composeShard(bindings, scene.context.context, scene.tenant.shard);
    await counted.countReplayable(
      scene.tenant.id,
      (await counted.findReplay(scene.tenant.id, id))!.filter,
      false,
      scene.now(),
    );
    await counted.startReplay(scene.tenant.id, id, null, scene.now());
    const walked = composeWatch(bindings, scene.context.context, scene.tenant.shard);
    const [part] = await scene.watch.listDueReplayParts(scene.now() + 1_000, 9);
    await walked.walkReplayable(part!);
    await scene.finish(id);
    // What is replayed is looked at again by the next, so it goes.
    await scene.db
      .prepare("delete from delivery where tenant_id = ? and status <> 'succeeded'")
      .bind(scene.tenant.id)
      .run();
    return cost.rowsRead;
  };
  const small = await reads();
  for (let n = 0; n < 8; n++) {
    await scene.endAll(names(500), { status: "succeeded", outcome: "delivered", errorClass: null });
  }
  expect(await reads()).toBe(small);
});
