import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createLaneLedger } from "../../../src/storage/ledger/lane.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { cancelAll, createLaneFixture } from "./support.ts";

test("heads that expire here and there do not make a walk begin again for each of them", async () => {
  const parts = 10;
  const policy = { delays_seconds: [3_600], jitter: 0 };
  const fixture = await createLaneFixture({ ordering_mode: "keyed", retry_policy: policy, concurrency_cap: 100 });
  fixture.answer = () => new Response(null, { status: 503 });
  const key = (n: number) => `k${String(n).padStart(4, "0")}/0`;
  for (let n = 0; n < parts * 64; n += 160) {
    await fixture.publishAll(Array.from({ length: 160 }, (_, i) => key(n + i)));
  }
  const lane = fixture.createLane();
  for (let i = 0; i < 50 && fixture.sent.length < parts * 64; i++) {
    const wakeAt = await lane.run();
    fixture.forward(Math.max(0, (wakeAt ?? 0) - fixture.now()) + 1);
    if (wakeAt === null || wakeAt > fixture.now() + 60_000) break;
  }
  expect(fixture.sent).toHaveLength(parts * 64);
  // One head of each part has expired.
  await fixture.db
    .prepare(
      `update delivery set expires_at = 1 where endpoint_id = ? and tenant_id = ?
         and lane_key in (select value from json_each(?))`,
    )
    .bind(
      fixture.endpointId,
      fixture.tenant.id,
      JSON.stringify(Array.from({ length: parts }, (_, part) => key(part * 64 + 32).split("/")[0])),
    )
    .run();
  let loads = 0;
  const heir = fixture.createLane("b", 0, (deps) => ({
    ...deps,
    loadLane: (...input) => (loads++, deps.loadLane(...input)),
  }));
  await heir.run();
  await cancelAll(fixture);
  expect(loads, "loads of a walk of ten parts in which ten heads end").toBeLessThanOrEqual(3 * parts);
});

test("what a look at a lane reads does not grow with how many of its keys are blocked", async () => {
  const reads: number[] = [];
  for (const count of [100, 400]) {
    const fixture = await createLaneFixture({ ordering_mode: "keyed", on_exhausted: "block", concurrency_cap: 100 });
    fixture.answer = () => new Response(null, { status: 400 });
    await fixture.publishAll(Array.from({ length: count }, (_, n) => `k${String(n).padStart(3, "0")}/0`));
    const lane = fixture.createLane();
    while ((await fixture.openCount()) > 0) await lane.run();
    await fixture.publishAll(["z/0"]);
    const cost = createCost();
    const counting = countingEnv(env as Env, cost);
    const ledger = createLaneLedger(shardsOf(counting).get(fixture.tenant.shard)!);
    await ledger.loadLane(fixture.tenant.id, fixture.endpointId, "", 64, 16, fixture.now());
    reads.push(cost.rowsRead);
    await fixture.db.prepare("delete from lane_block where endpoint_id = ?").bind(fixture.endpointId).run();
    fixture.answer = () => new Response("ok");
    await fixture.createLane().run();
  }
  expect(reads[1]! - reads[0]!, `rows read: ${reads.join()}`).toBeLessThan(100);
});
