/** Rows and indices that the relay writes for an event with a key, in its tables, by the simplest statements that write them. */

export interface Due {
  eventId: string;
  token: string;
}

const TENANT = "ten_floor";
const ENDPOINT = "ep_floor";
const DAY_MS = 86_400_000;

/** What the foreign keys of the others point to. */
export async function seed(db: D1Database): Promise<void> {
  const now = Date.now();
  await db.batch([
    db.prepare("insert into tenant (id, name, shard, created_at) values (?, 'floor', 'DB', ?)").bind(TENANT, now),
    db.prepare("insert into source (tenant_id, id, name, created_at) values (?, 'src', 'orders', ?)").bind(TENANT, now),
    db.prepare("insert into retry_policy (tenant_id, id, policy) values (?, 'rp', '{}')").bind(TENANT),
    db
      .prepare(
        "insert into endpoint (tenant_id, id, url, retry_policy_id, created_at) values (?, ?, 'http://a', 'rp', ?)",
      )
      .bind(TENANT, ENDPOINT, now),
    db
      .prepare(
        `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at)
         values (?, 'sub', ?, '*', ?)`,
      )
      .bind(TENANT, ENDPOINT, now),
  ]);
}

/** Event and delivery in one batch: five rows. */
export async function insertEvent(db: D1Database, event: { id: string; ref: string; size: number }): Promise<void> {
  const now = Date.now();
  await db.batch([
    db.prepare("select revision from tenant where id = ?").bind(TENANT),
    db
      .prepare(
        `insert into event (tenant_id, id, source_id, type, idempotency_key, payload_ref, payload_sha256, payload_size,
           payload_is_json, content_type, occurred_at, relayed_at, expires_at, dispatched_at, delivery_count)
         values (?1, ?2, 'src', 'bench', ?2, ?3, unhex(?4), ?5, 1, 'application/json', ?6, ?6, ?7, ?6, 1)`,
      )
      .bind(TENANT, event.id, event.ref, "ab".repeat(32), event.size, now, now + 30 * DAY_MS),
    db
      .prepare(
        `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
           scheduled_at, next_attempt_at, relay_region, expires_at)
         values (?1, ?2, ?3, 'sub', 'pending', 'rp', ?4, ?4, ?4, 'local', ?5)`,
      )
      .bind(TENANT, event.id, ENDPOINT, now, now + 30 * DAY_MS),
  ]);
}

export async function load(
  db: D1Database,
  due: Due[],
): Promise<{ id: string; payload_ref: string; relayed_at: number }[]> {
  const { results } = await db
    .prepare(
      `select e.id, e.payload_ref, e.relayed_at, d.status, d.attempt_count, ep.url from json_each(?2) j
       cross join delivery d on d.tenant_id = ?1 and d.event_id = j.value and d.endpoint_id = ?3 and d.replay_no = 0
       cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
       cross join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id`,
    )
    .bind(TENANT, JSON.stringify(due.map(({ eventId }) => eventId)), ENDPOINT)
    .all<{ id: string; payload_ref: string; relayed_at: number }>();
  return results;
}

const KEY = "tenant_id = ?1 and event_id = ?2 and endpoint_id = ?3 and replay_no = 0";

/** Three rows. */
export function claim(db: D1Database, { eventId, token }: Due): D1PreparedStatement[] {
  const now = Date.now();
  return [
    db
      .prepare(
        `update delivery set status = 'processing', token = ?4, attempt_count = 1, last_attempt_at = ?5,
           locked_until = ?6, next_attempt_at = ?6 where ${KEY} and status = 'pending'`,
      )
      .bind(TENANT, eventId, ENDPOINT, token, now, now + 45_000),
    db
      .prepare(
        `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, worker_id,
           relay_region, endpoint_revision, signing_secret_ids)
         values (?1, ?2, ?3, 0, 1, ?4, 'floor', 'local', 1, '["sec_00000000000000000000000000"]')`,
      )
      .bind(TENANT, eventId, ENDPOINT, now),
  ];
}

/** Two rows. */
export function close(db: D1Database, { eventId, token }: Due): D1PreparedStatement[] {
  const now = Date.now();
  return [
    db
      .prepare(
        `update attempt set responded_at = ?4, latency_ms = 1, status_code = 200, outcome_class = 'success',
           response_body_sha256 = unhex(?5), response_headers_json = '{}' where ${KEY} and attempt_number = 1`,
      )
      .bind(TENANT, eventId, ENDPOINT, now, "cd".repeat(32)),
    db
      .prepare(
        `update delivery set status = 'succeeded', final_outcome = 'succeeded', terminal_at = ?5, token = null,
           locked_until = null, next_attempt_at = null, last_status_code = 200 where ${KEY} and token = ?4`,
      )
      .bind(TENANT, eventId, ENDPOINT, token, now),
  ];
}
