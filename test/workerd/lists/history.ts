import { env } from "cloudflare:workers";
import { shardsOf } from "../../../src/compose.ts";
import { createEventIds } from "../../../src/core/ids.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";

/** An endpoint's history, one delivery a second: of each hundred 94 succeeded, four died, one was refused and one waits. */
export interface History {
  tenant: TestTenant;
  db: D1Database;
  endpointIds: string[];
  subscriptionIds: string[];
  /** When its first event was accepted. */
  begin: number;
  grow(count: number): Promise<void>;
}

const FAR = 4_000_000_000_000;
const CHUNK = 10_000;

export async function createHistory(): Promise<History> {
  const tenant = await createTestTenant();
  const { api } = tenant;
  await api.post("/v1/sources", { name: "orders" });
  const endpointIds: string[] = [];
  const subscriptionIds: string[] = [];
  for (const url of ["https://a.example/hook", "https://b.example/hook"]) {
    const endpoint = await api.post("/v1/endpoints", { url });
    endpointIds.push(endpoint.body.id);
    const subscription = { endpoint_id: endpoint.body.id, event_type_pattern: "*" };
    subscriptionIds.push((await api.post("/v1/subscriptions", subscription)).body.id);
  }
  const db = shardsOf(env as Env).get(tenant.shard)!;
  const begin = Date.now() - 10 * 86_400_000;
  let made = 0;

  async function insert(from: number, count: number): Promise<void> {
    const ids = Array.from({ length: count }, (_, i) => {
      const at = begin + (from + i) * 1_000;
      return [createEventIds(at, crypto.getRandomValues(new Uint8Array(10)), 1)[0], at, from + i];
    });
    const rows = JSON.stringify(ids);
    const id = "j.value ->> 0";
    const n = "(j.value ->> 2)";
    const at = "j.value ->> 1";
    // Nine of ten to the first endpoint.
    const endpoint = `iif(${n} % 10 = 3, ?3, ?2)`;
    const subscription = `iif(${n} % 10 = 3, ?5, ?4)`;
    const isDead = `${n} % 25 = 3`;
    const bind = (sql: string) => db.prepare(sql).bind(tenant.id, ...endpointIds, ...subscriptionIds, rows);
    await db.batch([
      bind(
        `insert into event (tenant_id, id, source_id, type, idempotency_key, ordering_key, payload_ref, payload_sha256,
           payload_size, payload_is_json, content_type, occurred_at, relayed_at, expires_at)
         select ?1, ${id}, (select id from source where tenant_id = ?1), iif(${n} % 2, 'odd.event', 'even.event'),
           'key-' || ${n}, 'order-' || (${n} / 10), 'r#0', x'00', 0, 1, 'application/json', ${at}, ${at}, ${FAR}
         from json_each(?6) j where ?2 is not null and ?3 is not null and ?4 is not null and ?5 is not null`,
      ),
      bind(
        `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
           next_attempt_at, terminal_at, final_outcome, attempt_count, last_error_class, last_status_code, expires_at)
         select ?1, ${id}, ${endpoint}, ${subscription},
           case when ${isDead} then 'dead_letter' when ${n} % 100 = 50 then 'failed' when ${n} % 100 = 51 then 'pending'
             else 'succeeded' end,
           (select retry_policy_id from endpoint where tenant_id = ?1), ${at}, iif(${n} % 100 = 51, ${FAR}, null),
           iif(${n} % 100 = 51, null, ${at} + 500),
           case when ${isDead} then 'exhausted' when ${n} % 100 = 50 then 'endpoint_disabled' when ${n} % 100 = 51 then null
             else 'delivered' end,
           iif(${n} % 100 = 50, 0, 1), iif(${isDead} or ${n} % 100 = 51, 'http_5xx', null),
           case when ${isDead} or ${n} % 100 = 51 then 503 when ${n} % 100 = 50 then null else 200 end, ${FAR}
         from json_each(?6) j`,
      ),
      bind(
        `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, responded_at,
           status_code, outcome_class, error_class, partner_request_id, worker_id, endpoint_revision, signing_secret_ids)
         select ?1, ${id}, ${endpoint}, 0, 1, ${at}, ${at} + 500, iif(${isDead} or ${n} % 100 = 51, 503, 200),
           iif(${isDead} or ${n} % 100 = 51, 'transient', 'success'), iif(${isDead} or ${n} % 100 = 51, 'http_5xx', null),
           'their-' || ${n}, 'v1.' || (${n} / 1000) || '.queue', 1, '[]'
         from json_each(?6) j where ${n} % 100 <> 50 and ?4 is not null and ?5 is not null`,
      ),
    ]);
  }

  return {
    tenant,
    db,
    endpointIds,
    subscriptionIds,
    begin,
    async grow(count) {
      for (const end = made + count; made < end; made += Math.min(CHUNK, end - made)) {
        await insert(made, Math.min(CHUNK, end - made));
      }
    },
  };
}
