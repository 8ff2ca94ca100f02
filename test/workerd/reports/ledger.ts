import { onTestFinished } from "vitest";
import { createEventIds } from "../../../src/core/ids.ts";
import { empty, type Scene } from "../support/scene.ts";

/** A row of each table as a test wants it; what is left out is of no account. Times are ms since 1970 UTC. */
export interface SeedEvent {
  /** Of an event that may be there already. */
  id?: string;
  /** When it was accepted. */
  at: number;
  occurredAt?: number;
  sourceId?: string;
  type?: string;
  schemaVersion?: number;
  variants?: number[];
  expiresAt?: number;
  /** Whether its deliveries are not all on record. */
  isFanningOut?: boolean;
  deliveries?: SeedDelivery[];
}

export interface SeedDelivery {
  endpointId?: string;
  replayNo?: number;
  subscriptionId?: string;
  status?: string;
  createdAt?: number;
  /** Of one that is not open; else when its event came. */
  terminalAt?: number | null;
  finalOutcome?: string | null;
  lastErrorClass?: string | null;
  replayedAs?: number | null;
  laneKey?: string | null;
  lanePosition?: number | null;
  scheduledAt?: number | null;
  schemaVersion?: number | null;
  filterMs?: number | null;
  filterSteps?: number | null;
  attempts?: SeedAttempt[];
}

export interface SeedAttempt {
  requestedAt: number;
  /** Null while it is open. */
  latencyMs?: number | null;
  statusCode?: number | null;
  outcomeClass?: string | null;
  errorClass?: string | null;
  bodySha256?: string | null;
  workerId?: string | null;
  relayRegion?: string | null;
}

const FAR = 4_000_000_000_000;
const CHUNK = 2_000;

/** Puts a known ledger in place, and takes it away at the test's end. */
export async function seed(scene: Scene, events: SeedEvent[]): Promise<string[]> {
  const ids = await fill(scene, events);
  onTestFinished(() => empty(scene));
  return ids;
}

/** The same for all tests of a file, which then empties it itself. */
export async function fill(scene: Scene, events: SeedEvent[]): Promise<string[]> {
  const { db, tenant, endpointId } = scene;
  const first = await db
    .prepare(
      `select s.id as source_id, b.id as subscription_id, e.retry_policy_id from source s, subscription b, endpoint e
       where s.tenant_id = ?1 and s.name = 'orders' and b.endpoint_id = ?2 and b.deleted_at is null
         and e.tenant_id = ?1 and e.id = ?2 limit 1`,
    )
    .bind(tenant.id, endpointId)
    .first<{ source_id: string; subscription_id: string; retry_policy_id: string }>();
  const rows = events.map((event, i) => {
    const random = new Uint8Array(10);
    new DataView(random.buffer).setUint32(6, i);
    return { ...event, id: event.id ?? createEventIds(event.at, random, 1)[0]! };
  });
  for (let at = 0; at < rows.length; at += CHUNK) {
    const part = rows.slice(at, at + CHUNK);
    const deliveries = part.flatMap((event) =>
      (event.deliveries ?? []).map((delivery) => ({
        ...delivery,
        event,
        endpointId: delivery.endpointId ?? endpointId,
        replayNo: delivery.replayNo ?? 0,
      })),
    );
    await db.batch([
      insert(
        db,
        "event",
        part.map((event) => ({
          tenant_id: tenant.id,
          id: event.id,
          source_id: event.sourceId ?? first!.source_id,
          type: event.type ?? "order.created",
          schema_version: event.schemaVersion ?? 1,
          variants: event.variants ? JSON.stringify(event.variants.map((version) => [version, 0, ""])) : null,
          payload_ref: "r#0",
          payload_sha256: "00",
          payload_size: 0,
          payload_is_json: 1,
          content_type: "application/json",
          occurred_at: event.occurredAt ?? event.at,
          relayed_at: event.at,
          expires_at: event.expiresAt ?? FAR,
          dispatched_at: event.isFanningOut ? null : event.at,
        })),
      ),
      insert(
        db,
        "delivery",
        deliveries.map((delivery) => ({
          tenant_id: tenant.id,
          event_id: delivery.event.id,
          endpoint_id: delivery.endpointId,
          replay_no: delivery.replayNo,
          subscription_id: delivery.subscriptionId ?? first!.subscription_id,
          status: delivery.status ?? "succeeded",
          attempt_count: delivery.attempts?.length ?? 0,
          retry_policy_id: first!.retry_policy_id,
          created_at: delivery.createdAt ?? delivery.event.at,
          scheduled_at: delivery.scheduledAt === undefined ? delivery.event.at : delivery.scheduledAt,
          next_attempt_at: isOpen(delivery) ? FAR - 1 : null,
          last_attempt_at: delivery.attempts?.at(-1)?.requestedAt ?? null,
          terminal_at: isOpen(delivery) ? null : (delivery.terminalAt ?? delivery.event.at),
          final_outcome: delivery.finalOutcome ?? null,
          last_error_class: delivery.lastErrorClass ?? null,
          replayed_as: delivery.replayedAs ?? null,
          lane_key: delivery.laneKey ?? null,
          lane_position: delivery.lanePosition ?? null,
          schema_version: delivery.schemaVersion ?? null,
          filter_match_ms: delivery.filterMs ?? null,
          filter_match_steps: delivery.filterSteps ?? null,
          expires_at: delivery.event.expiresAt ?? FAR,
        })),
      ),
      insert(
        db,
        "attempt",
        deliveries.flatMap((delivery) =>
          (delivery.attempts ?? []).map((attempt, i) => {
            const latencyMs = attempt.latencyMs === undefined ? 5 : attempt.latencyMs;
            return {
              tenant_id: tenant.id,
              event_id: delivery.event.id,
              endpoint_id: delivery.endpointId,
              replay_no: delivery.replayNo,
              attempt_number: i + 1,
              requested_at: attempt.requestedAt,
              responded_at: latencyMs === null ? null : attempt.requestedAt + latencyMs,
              latency_ms: latencyMs,
              status_code: attempt.statusCode === undefined ? 200 : attempt.statusCode,
              outcome_class: attempt.outcomeClass === undefined ? "success" : attempt.outcomeClass,
              error_class: attempt.errorClass ?? null,
              response_body_sha256: attempt.bodySha256 ?? null,
              worker_id: attempt.workerId ?? null,
              relay_region: attempt.relayRegion ?? null,
              endpoint_revision: 1,
              signing_secret_ids: "[]",
            };
          }),
        ),
      ),
    ]);
  }
  return rows.map(({ id }) => id);
}

export function isOpen({ status }: { status?: string }): boolean {
  return status === "pending" || status === "processing";
}

/** Hashes, in hex, become blobs. */
function insert(db: D1Database, table: string, rows: Record<string, unknown>[]): D1PreparedStatement {
  const columns = Object.keys(rows[0] ?? { tenant_id: null });
  const value = (column: string) =>
    column.endsWith("sha256") ? `unhex(value ->> '${column}')` : `value ->> '${column}'`;
  return db
    .prepare(
      `insert into ${table} (${columns.join(", ")}) select ${columns.map(value).join(", ")} from json_each(?)${table === "event" ? " where true on conflict do nothing" : ""}`,
    )
    .bind(JSON.stringify(rows));
}
