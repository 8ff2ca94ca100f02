import { env } from "cloudflare:workers";
import { onTestFinished } from "vitest";
import type { ShardDeps } from "../../../src/app/deps.ts";
import type { DeliveryCall } from "../../../src/app/deliver/delivery-call.ts";
import type { ExpandFanOutDeps } from "../../../src/app/publish/expand-fan-out.ts";
import { composeDeliver, shardsOf } from "../../../src/compose.ts";
import { createTestTenant, type TestTenant } from "./api.ts";
import { createTestContext, shardDeps, type TestContext } from "./worker.ts";

/** The runtime has a watchdog of its own, which leaves alone what is younger than it. */
const AHEAD_MS = 3_600_000;

/** A tenant with many endpoints, each subscribed to everything, every third of them strict. */
export interface Crowd {
  tenant: TestTenant;
  db: D1Database;
  context: TestContext;
  /** When its events are published: an hour from now. */
  now(): number;
  /** In order of id, which is that of matching. */
  endpointIds: string[];
  subscriptionOf(endpointId: string): string;
  isStrict(endpointId: string): boolean;
  /** Nothing is rung for, and no lane is woken. */
  shard: ShardDeps;
  expand: ExpandFanOutDeps;
  /** What the expansions have rung for. */
  rung: DeliveryCall[];
  /** Deliveries of an event by endpoint. */
  deliveriesOf(eventId: string): Promise<Map<string, Record<string, any>>>;
  openParts(): Promise<number>;
  dispatchedAt(eventId: string): Promise<number | null>;
}

export async function createCrowd(count: number, bindings: Env = env as Env): Promise<Crowd> {
  const tenant = await createTestTenant();
  const { api } = tenant;
  await api.post("/v1/sources", { name: "orders" });
  const { id: first } = (await api.post("/v1/endpoints", { url: "https://consumer.example/hook" })).body;
  const { id: firstSubscription } = (
    await api.post("/v1/subscriptions", { endpoint_id: first, event_type_pattern: "*" })
  ).body;
  const db = shardsOf(env as Env).get(tenant.shard)!;
  // The first eight characters of what the relay made are chance; the rest counts.
  const idOf = (made: string, n: number) => made.slice(0, -8) + String(n).padStart(8, "0");
  const numbers = Array.from({ length: count }, (_, n) => n);
  const rows = JSON.stringify(numbers.map((n) => [idOf(first, n), idOf(firstSubscription, n), n % 3 === 0 ? 1 : 0]));
  await db.batch([
    db
      .prepare(
        `insert into endpoint (tenant_id, id, url, ordering_mode, route, retry_policy_id, created_at)
         select e.tenant_id, j.value ->> 0, e.url, iif(j.value ->> 2, 'strict', 'unordered'),
           iif(j.value ->> 2, 'lane', 'queue'), e.retry_policy_id, e.created_at
         from json_each(?1) j cross join endpoint e on e.tenant_id = ?2 and e.id = ?3`,
      )
      .bind(rows, tenant.id, first),
    db
      .prepare(
        `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at)
         select ?2, j.value ->> 1, j.value ->> 0, '*', 0 from json_each(?1) j`,
      )
      .bind(rows, tenant.id),
    db.prepare("update subscription set deleted_at = 1 where id = ?").bind(firstSubscription),
    db.prepare("update endpoint set deleted_at = 1 where id = ?").bind(first),
    db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenant.id),
  ]);
  onTestFinished(async () => {
    await db.batch([
      db.prepare("delete from fan_out where tenant_id = ?").bind(tenant.id),
      db
        .prepare(
          `update delivery set status = 'cancelled', terminal_at = 1, token = null, next_attempt_at = null, hold_until = null
           where tenant_id = ? and terminal_at is null`,
        )
        .bind(tenant.id),
    ]);
  });
  const context = createTestContext();
  const rung: DeliveryCall[] = [];
  const now = () => Date.now() + AHEAD_MS;
  return {
    now,
    tenant,
    db,
    context,
    endpointIds: numbers.map((n) => idOf(first, n)),
    subscriptionOf: (endpointId) => firstSubscription.slice(0, -8) + endpointId.slice(-8),
    isStrict: (endpointId) => Number(endpointId.slice(-8)) % 3 === 0,
    shard: { ...shardDeps(tenant, context, bindings), wakeLane: () => {}, now, sleep: async () => {} },
    expand: {
      ...composeDeliver(bindings, context.context, tenant.shard, "queue"),
      announce: (calls) => void rung.push(...calls),
      now,
      sleep: async () => {},
    },
    rung,
    async deliveriesOf(eventId) {
      const { results } = await db
        .prepare("select * from delivery where tenant_id = ? and event_id = ?")
        .bind(tenant.id, eventId)
        .all<Record<string, any>>();
      return new Map(results.map((row) => [row["endpoint_id"], row]));
    },
    async openParts() {
      return (await db
        .prepare("select count(*) as n from fan_out where tenant_id = ?")
        .bind(tenant.id)
        .first<number>("n"))!;
    },
    async dispatchedAt(eventId) {
      const sql = "select dispatched_at from event where tenant_id = ? and id = ?";
      return db.prepare(sql).bind(tenant.id, eventId).first<number | null>("dispatched_at");
    },
  };
}
