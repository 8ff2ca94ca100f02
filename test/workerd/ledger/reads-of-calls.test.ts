import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createLaneViewLedger } from "../../../src/storage/ledger/lane-view.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";

const HISTORY = 2_000;
const SUBSCRIPTIONS = 300;

let tenant: TestTenant;
let endpointId: string;

beforeAll(async () => {
  tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  const endpoint = await tenant.api.post("/v1/endpoints", {
    url: "https://consumer.example/hook",
    ordering_mode: "strict",
  });
  endpointId = endpoint.body.id;
  await tenant.api.post("/v1/subscriptions", { endpoint_id: endpointId, event_type_pattern: "*" });
  await fill();
});

/** Ended deliveries of the tenant, and subscriptions that match nothing. */
async function fill(): Promise<void> {
  const db = shardsOf(env as Env).get(tenant.shard)!;
  const numbers = (count: number) =>
    `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ${count})`;
  const id = "'evt_00' || printf('%024d', n.i)";
  const bind = (sql: string) => db.prepare(sql).bind(tenant.id, endpointId);
  await db.batch([
    bind(
      `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
         content_type, occurred_at, relayed_at, expires_at)
       ${numbers(HISTORY)} select ?1, ${id}, (select id from source where tenant_id = ?1), 'old.event', 'r#0', x'00', 0, 1,
         'application/json', 0, 0, 4000000000000 from n where ?2 is not null`,
    ),
    bind(
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
         terminal_at, expires_at)
       ${numbers(HISTORY)} select ?1, ${id}, ?2, (select id from subscription where tenant_id = ?1), 'succeeded',
         (select retry_policy_id from endpoint where tenant_id = ?1), 0, 1, 4000000000000 from n`,
    ),
    bind(
      `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at)
       ${numbers(SUBSCRIPTIONS)} select ?1, 'sub_' || printf('%016d', n.i), ?2, 'nothing.matches', 0 from n`,
    ),
  ]);
}

test("looking at a lane reads what is open in it, whatever its tenant has had", async () => {
  const cost = createCost();
  const db = shardsOf(countingEnv(env as Env, cost)).get(tenant.shard)!;
  const lane = await createLaneViewLedger(db).viewLane(tenant.id, endpointId, 100, Date.now());
  expect(lane!.depth).toBe(0);
  expect(cost.rowsRead).toBeLessThan(20);
});

test("a publish that is refused again and again reads one row each time, and not all subscriptions", async () => {
  const event = { type: "new.event", source: "orders" };
  const context = createTestContext();
  // Loads the configuration.
  await publish(shardDeps(tenant, context), tenant, event);
  const cost = createCost();
  const counting = shardDeps(tenant, context, countingEnv(env as Env, cost));
  for (let n = 1; n <= 3; n++) {
    await expect(publish(counting, tenant, { ...event, source: "nobody" })).rejects.toThrow("invalid fields");
    expect(cost.rowsRead).toBe(n);
  }
});

test("what was refused is taken once the configuration says so", async () => {
  const context = createTestContext();
  const event = { type: "new.event", source: "newcomer" };
  await expect(publish(shardDeps(tenant, context), tenant, event)).rejects.toThrow("invalid fields");
  await tenant.api.post("/v1/sources", { name: "newcomer" });
  await publish(shardDeps(tenant, context), tenant, event);
});
