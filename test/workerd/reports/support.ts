import { deliveryId, firstEventIdAt } from "../../../src/core/ids.ts";
import type { Scene } from "../support/scene.ts";

const FAR = 4_000_000_000_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

export interface Tried {
  at: number;
  /** Null while it is under way. */
  outcomeClass?: string | null;
  errorClass?: string | null;
}

export interface Recorded {
  createdAt?: number;
  status?: string;
  terminalAt?: number | null;
  finalOutcome?: string | null;
  lastErrorClass?: string | null;
  replayNo?: number;
  replayedAs?: number | null;
  expiresAt?: number;
  subscriptionId?: string;
  endpointId?: string;
  laneKey?: string | null;
  attempts?: Tried[];
  eventId?: string;
}

let n = 0;

/** Deliveries as the relay would have left them, with an event each; gives back their ids. */
export async function record({ db, tenant, endpointId }: Scene, rows: Recorded[]): Promise<string[]> {
  const { results } = await db
    .prepare("select id, endpoint_id from subscription where tenant_id = ? order by created_at, id")
    .bind(tenant.id)
    .all<{ id: string; endpoint_id: string }>();
  const ids: string[] = [];
  const statements = rows.flatMap((row) => {
    const createdAt = row.createdAt ?? Date.now() - HOUR_MS;
    const status = row.status ?? "dead_letter";
    const isOpen = status === "pending" || status === "processing";
    const to = row.endpointId ?? endpointId;
    const eventId = row.eventId ?? firstEventIdAt(createdAt).slice(0, 14) + String(++n).padStart(16, "0");
    const key = [tenant.id, eventId, to, row.replayNo ?? 0];
    ids.push(deliveryId({ eventId, endpointId: to, replayNo: row.replayNo ?? 0 }));
    const attempts = row.attempts ?? [];
    return [
      db
        .prepare(
          `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
             content_type, occurred_at, relayed_at, expires_at)
           select ?1, ?2, (select id from source where tenant_id = ?1 and deleted_at is null), 'old.event', 'r#0', x'00', 0, 1,
             'application/json', ?3, ?3, ?4 on conflict do nothing`,
        )
        .bind(tenant.id, eventId, createdAt, row.expiresAt ?? FAR),
      db
        .prepare(
          `insert into delivery (tenant_id, event_id, endpoint_id, replay_no, subscription_id, status, attempt_count,
             retry_policy_id, created_at, next_attempt_at, terminal_at, final_outcome, last_error_class, replayed_as, lane_key,
             lane_position, expires_at)
           select ?1, ?2, ?3, ?4, ?5, ?6, ?7, (select retry_policy_id from endpoint where tenant_id = ?1 and id = ?3), ?8, ?9,
             ?10, ?11, ?12, ?13, ?14, ?15, ?16`,
        )
        .bind(
          ...key,
          row.subscriptionId ?? results.find(({ endpoint_id }) => endpoint_id === to)!.id,
          status,
          attempts.length,
          createdAt,
          isOpen ? FAR - 1 : null,
          isOpen ? null : (row.terminalAt ?? createdAt),
          isOpen ? null : (row.finalOutcome ?? (status === "succeeded" ? "delivered" : "exhausted")),
          row.lastErrorClass ?? null,
          row.replayedAs ?? null,
          row.laneKey ?? null,
          row.laneKey === undefined || row.laneKey === null ? null : ++n,
          row.expiresAt ?? FAR,
        ),
      ...attempts.map(({ at, ...tried }, i) =>
        db
          .prepare(
            `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, responded_at,
               latency_ms, status_code, outcome_class, error_class, endpoint_revision, signing_secret_ids)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?6 + 5, 5, null, ?7, ?8, 1, '[]')`,
          )
          .bind(
            ...key,
            i + 1,
            at,
            tried.outcomeClass === undefined ? (tried.errorClass ? "transient" : "success") : tried.outcomeClass,
            tried.errorClass ?? null,
          ),
      ),
    ];
  });
  await db.batch(statements);
  return ids;
}

/** `count` deliveries that died a millisecond apart, the newest at `until`, each after one failed request. */
export async function recordDead(scene: Scene, count: number, until: number, over: { open?: boolean } = {}) {
  const { db, tenant, endpointId } = scene;
  const { open = true } = over;
  const numbers = `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ${count})`;
  const id = `'evt_01' || printf('%08d%016d', ${n++}, n.i)`;
  const bind = (sql: string) => db.prepare(sql).bind(tenant.id, endpointId);
  await db.batch([
    bind(
      `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
         content_type, occurred_at, relayed_at, expires_at)
       ${numbers} select ?1, ${id}, (select id from source where tenant_id = ?1 and deleted_at is null), 'old.event', 'r#0',
         x'00', 0, 1, 'application/json', 0, 0, ${FAR} from n where ?2 is not null`,
    ),
    bind(
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
         terminal_at, final_outcome, last_error_class, attempt_count, replayed_as, expires_at)
       ${numbers} select ?1, ${id}, ?2, (select id from subscription where endpoint_id = ?2 limit 1), 'dead_letter',
         (select retry_policy_id from endpoint where id = ?2), 0, ${until} - n.i, iif(n.i % 2, 'exhausted', 'rejected'),
         'http_5xx', 1, ${open ? "null" : "1"}, ${FAR} from n where ?1 is not null`,
    ),
    bind(
      `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, responded_at,
         outcome_class, error_class, endpoint_revision, signing_secret_ids)
       ${numbers} select ?1, ${id}, ?2, 0, 1, ${until} - n.i - 5, ${until} - n.i, 'transient', 'http_5xx', 1, '[]' from n`,
    ),
  ]);
}
