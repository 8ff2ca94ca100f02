import { env } from "cloudflare:workers";
import { expect, onTestFinished, test } from "vitest";
import { createGaugeLedger } from "../../../src/storage/ledger/gauges.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { explain } from "../support/plans.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { shardsOf } from "../../../src/compose.ts";

const FAR = 4_000_000_000_000;
const BOUNDS = { MAX_TENANTS: 100_000, MAX_DEAD_LETTERS: 100_000, MAX_LANES: 100_000, MAX_HEADS: 100_000 };

/** Rows of one tenant in the form of one that it has, `count` of them, each with what `over` says. */
async function multiply(scene: Scene, count: number, over: Record<string, string>): Promise<void> {
  const first = await scene.publishOne();
  const columns = Object.keys(
    (await scene.db.prepare("select * from delivery where event_id = ?").bind(first.ref.eventId).first())!,
  );
  const values = columns.map((column) => over[column] ?? `d.${column}`);
  await scene.db
    .prepare(
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})
       insert into delivery (${columns.join(", ")})
       select ${values.join(", ")} from n cross join delivery d on d.event_id = ?1 and d.replay_no = 0`,
    )
    .bind(first.ref.eventId)
    .run();
  await scene.db
    .prepare("update delivery set status = 'cancelled', terminal_at = 1 where event_id = ? and replay_no = 0")
    .bind(first.ref.eventId)
    .run();
  onTestFinished(async () => {
    await scene.db
      .prepare(
        "update delivery set status = 'succeeded', terminal_at = 1, hold_until = null where tenant_id = ? and terminal_at is null or status = 'dead_letter'",
      )
      .bind(scene.tenant.id)
      .run();
  });
}

const DEAD = {
  replay_no: "n.i",
  status: "'dead_letter'",
  terminal_at: "n.i",
  final_outcome: "'rejected'",
  next_attempt_at: "null",
};
const read = (scene: Scene, bounds = BOUNDS) => createGaugeLedger(scene.db, bounds).readGauges(Date.now());

test("open dead letters are those that are neither replayed nor expired", async () => {
  const scene = await createScene();
  const before = (await read(scene)).openDeadLetters.count;
  await multiply(scene, 9, {
    ...DEAD,
    replayed_as: "iif(n.i % 3 = 0, 1, null)",
    expires_at: `iif(n.i % 3 = 1, 1, ${FAR})`,
  });
  expect((await read(scene)).openDeadLetters).toEqual({ count: before + 3, isComplete: true });
});

test("what is too much to count is said to be at least what was counted", async () => {
  const scene = await createScene();
  await multiply(scene, 30, DEAD);
  const { openDeadLetters } = await read(scene, { ...BOUNDS, MAX_DEAD_LETTERS: 20 });
  expect(openDeadLetters.isComplete).toBe(false);
  expect(openDeadLetters.count).toBeLessThanOrEqual(21);
  const { openLanes, laneHeads, oldestHeadAt } = await read(scene, { ...BOUNDS, MAX_LANES: 0, MAX_HEADS: 0 });
  for (const some of [openLanes, laneHeads]) expect(some.count).toBe(0);
  expect(laneHeads.isComplete || oldestHeadAt === null).toBe(true);
});

test("lanes are counted by endpoint and heads by key, and the oldest head is of a lane that nothing holds", async () => {
  const scene = await createScene();
  const before = await read(scene);
  await multiply(scene, 12, {
    replay_no: "n.i",
    lane_key: "'key' || (n.i % 4)",
    lane_position: "n.i",
    created_at: "n.i",
    next_attempt_at: `${FAR}`,
  });
  const after = await read(scene);
  expect(after.openLanes).toEqual({ count: before.openLanes.count + 1, isComplete: true });
  expect(after.laneHeads).toEqual({ count: before.laneHeads.count + 4, isComplete: true });
  expect(after.oldestHeadAt).toBe(1);
  await scene.db.prepare("update endpoint set paused_at = 1 where id = ?").bind(scene.endpointId).run();
  expect((await read(scene)).oldestHeadAt).toBe(before.oldestHeadAt);
});

test("the oldest due is what is due now, and nothing where nothing is", async () => {
  const scene = await createScene();
  await multiply(scene, 2, { replay_no: "n.i", next_attempt_at: `iif(n.i = 1, 5, ${FAR})` });
  expect((await read(scene)).oldestDueAt).toBe(5);
  expect(await createGaugeLedger(scene.db, BOUNDS).readGauges(4)).toMatchObject({ oldestDueAt: null });
});

test("a look at a large ledger reads a bounded number of rows, and scans no table", async () => {
  const scene = await createScene();
  await multiply(scene, 3_000, DEAD);
  const cost = createCost();
  const db = shardsOf(countingEnv(env as Env, cost)).get(scene.tenant.shard)!;
  await createGaugeLedger(db, { MAX_TENANTS: 5, MAX_DEAD_LETTERS: 10, MAX_LANES: 5, MAX_HEADS: 5 }).readGauges(
    Date.now(),
  );
  expect(cost.ledgerTrips).toBe(1);
  expect(cost.rowsRead).toBeLessThan(300);
  expect(cost.rowsWritten).toBe(0);

  const plans = await explain(scene.db, (ledger) => createGaugeLedger(ledger).readGauges(Date.now()));
  expect(plans.length).toBeGreaterThan(10);
  expect(plans.filter((detail) => /^SCAN (delivery|d|x|ep|tenant|endpoint)\b/.test(detail))).toEqual([]);
});
