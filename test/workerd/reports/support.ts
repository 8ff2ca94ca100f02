import { deliveryId, firstEventIdAt } from "../../../src/core/ids.ts";
import type { Scene } from "../support/scene.ts";
import { fill, isOpen, type SeedDelivery, type SeedEvent } from "./ledger.ts";

const FAR = 4_000_000_000_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

export interface Tried {
  at: number;
  /** Null while it is under way. */
  outcomeClass?: string | null;
  errorClass?: string | null;
}

export interface Recorded extends Omit<SeedDelivery, "attempts"> {
  eventId?: string;
  expiresAt?: number;
  attempts?: Tried[];
}

let n = 0;

/** Deliveries as the relay would have left them, with an event each; gives back their ids. */
export async function record(scene: Scene, rows: Recorded[]): Promise<string[]> {
  const { db, tenant } = scene;
  const { results } = await db
    .prepare("select id, endpoint_id from subscription where tenant_id = ? order by created_at, id")
    .bind(tenant.id)
    .all<{ id: string; endpoint_id: string }>();
  const events = rows.map((row): SeedEvent & { id: string } => {
    const { status = "dead_letter", createdAt = Date.now() - HOUR_MS, endpointId = scene.endpointId } = row;
    return {
      id: row.eventId ?? firstEventIdAt(createdAt).slice(0, 14) + String(++n).padStart(16, "0"),
      at: createdAt,
      type: "old.event",
      ...(row.expiresAt !== undefined && { expiresAt: row.expiresAt }),
      deliveries: [
        {
          ...row,
          status,
          endpointId,
          subscriptionId: row.subscriptionId ?? results.find(({ endpoint_id }) => endpoint_id === endpointId)!.id,
          scheduledAt: null,
          finalOutcome: isOpen({ status })
            ? null
            : (row.finalOutcome ?? (status === "succeeded" ? "delivered" : "exhausted")),
          lanePosition: row.laneKey == null ? null : ++n,
          attempts: (row.attempts ?? []).map(({ at, errorClass = null, outcomeClass }) => ({
            requestedAt: at,
            statusCode: null,
            outcomeClass: outcomeClass === undefined ? (errorClass ? "transient" : "success") : outcomeClass,
            errorClass,
          })),
        },
      ],
    };
  });
  await fill(scene, events);
  return events.map(({ id, deliveries }) =>
    deliveryId({ eventId: id, endpointId: deliveries![0]!.endpointId!, replayNo: deliveries![0]!.replayNo ?? 0 }),
  );
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
