import type { ClockMark } from "../../core/failing-clock.ts";
import type { TenantDeliveryRef } from "./deliver.ts";
import { blockLane } from "./block.ts";
import { disableEndpoint } from "./disable.ts";
import { clockStatements } from "./failing-clock.ts";
import { retryKey } from "./lane-key.ts";
import { isAwayFromPlace, placeOf } from "./lane-position.ts";
import { raiseDeadLetter, ringFor, type OutboxBell } from "./raise.ts";

/** How an attempt ended, and what its delivery does next. */
export interface Closing extends TenantDeliveryRef {
  attemptNumber: number;
  /** The claim's. A stale one closes its attempt and moves nothing, save by a success. */
  token: string;
  attempt: {
    respondedAt: number;
    latencyMs: number | null;
    statusCode: number | null;
    outcomeClass: string;
    errorClass: string | null;
    /** Hex. */
    responseBodySha256: string | null;
    responseHeadersJson: string | null;
    partnerRequestId: string | null;
  };
  delivery:
    | { status: "succeeded" | "dead_letter"; finalOutcome: string }
    | { status: "pending"; nextAttemptAt: number; failureCount: number; relayFaultCount: number };
  /** Disables the endpoint, unless it has another URL by now than the request went to, or its clock says no. */
  disable: { url: string; reason: "gone" | "failing" } | null;
  /** What the attempt says of the endpoint; null when that is nothing. */
  clock: { mark: ClockMark; url: string; requestedAt: number; mayTell: boolean } | null;
}

const KEY = "tenant_id = ?1 and event_id = ?2 and endpoint_id = ?3 and replay_no = ?4";

export function createCloseLedger(db: D1Database, bell: OutboxBell = () => {}) {
  return {
    /**
     * Closes attempts and moves their deliveries in one batch; done twice it changes nothing. An attempt is closed while
     * it is open or `abandoned`, token or not. A delivery moves where the token is its own; a recorded success ends any
     * delivery that is still open.
     */
    async closeAttempts(closings: Closing[]): Promise<void> {
      ringFor(bell, await db.batch(closings.flatMap((closing) => closingStatements(db, closing))));
    },

    /** The closed attempts of a delivery before `attemptNumber`, newest first. Primary key. */
    async listRecentAnswers(ref: TenantDeliveryRef, attemptNumber: number, limit: number) {
      const { results } = await db
        .prepare(
          `select requested_at, status_code, error_class, hex(response_body_sha256) as hash
           from attempt where ${KEY} and attempt_number < ?5 order by attempt_number desc limit ?6`,
        )
        .bind(ref.tenantId, ref.eventId, ref.endpointId, ref.replayNo, attemptNumber, limit)
        .all<{ requested_at: number; status_code: number | null; error_class: string | null; hash: string }>();
      return results.map((row) => ({
        requestedAt: row.requested_at,
        statusCode: row.status_code,
        errorClass: row.error_class,
        responseBodySha256: row.hash === "" ? null : row.hash.toLowerCase(),
      }));
    },
  };
}

/** Both halves of the close, and what else its delivery's end brings with it. */
export function closingStatements(db: D1Database, closing: Closing): D1PreparedStatement[] {
  const { tenantId, endpointId, eventId, disable, attempt } = closing;
  return [
    ...clockStatements(db, closing),
    closeAttempt(db, closing),
    ...(closing.delivery.status === "dead_letter" ? [raiseEnd(db, closing, closing.delivery.finalOutcome)] : []),
    moveDelivery(db, closing),
    ...(closing.delivery.status === "pending" ? [goToPlace(db, closing)] : []),
    ...(closing.delivery.status === "dead_letter" ? [blockLane(db, closing, attempt.respondedAt)] : []),
    ...(disable?.reason === "gone"
      ? disableEndpoint(db, { tenantId, endpointId, ...disable, now: attempt.respondedAt, by: eventId })
      : []),
  ];
}

/**
 * A success that is told late ends its delivery while the next attempt may be under way. Nothing waits for that one any more,
 * and if its process has died nobody else would close it: it is abandoned until its true outcome comes.
 */
function closeAttempt(db: D1Database, closing: Closing): D1PreparedStatement {
  const { attempt, delivery } = closing;
  const ifOwn = (value: string, other: string) => `iif(attempt_number = ?5, ${value}, ${other})`;
  return db
    .prepare(
      `update attempt set responded_at = ?6, latency_ms = ${ifOwn("?7", "null")}, status_code = ${ifOwn("?8", "null")},
         outcome_class = ${ifOwn("?9", "'unreachable'")}, error_class = ${ifOwn("?10", "'abandoned'")},
         response_body_sha256 = ${ifOwn("unhex(?11)", "null")}, response_headers_json = ${ifOwn("?12", "null")},
         partner_request_id = ${ifOwn("?13", "null")}
       where ${KEY} and attempt_number >= ?5 and (outcome_class is null or attempt_number = ?5 and error_class = 'abandoned')
         and (attempt_number = ?5 or ?14)`,
    )
    .bind(
      closing.tenantId,
      closing.eventId,
      closing.endpointId,
      closing.replayNo,
      closing.attemptNumber,
      attempt.respondedAt,
      attempt.latencyMs,
      attempt.statusCode,
      attempt.outcomeClass,
      attempt.errorClass,
      attempt.responseBodySha256,
      attempt.responseHeadersJson,
      attempt.partnerRequestId,
      delivery.status === "succeeded" ? 1 : 0,
    );
}

/** A deleted endpoint gets no further attempt: what was under way when it went ends with it. */
const IS_DELETED = `exists (
  select 1 from endpoint e where e.tenant_id = ?1 and e.id = ?3 and e.deleted_at is not null)`;

/** Under the condition of `moveDelivery`. */
function raiseEnd(db: D1Database, closing: Closing, finalOutcome: string): D1PreparedStatement {
  const { attempt, token } = closing;
  const death = { finalOutcome, at: attempt.respondedAt, attempt };
  return raiseDeadLetter(db, closing, death, "d.terminal_at is null and d.token = ?5", token);
}

function moveDelivery(db: D1Database, closing: Closing): D1PreparedStatement {
  const { delivery, attempt, token } = closing;
  const key = [closing.tenantId, closing.eventId, closing.endpointId, closing.replayNo];
  if (delivery.status === "pending") {
    return db
      .prepare(
        `update delivery set token = null, locked_until = null, failure_count = ?7, relay_fault_count = ?8,
           last_status_code = ?9, last_error_class = ?10,
           status = iif(${IS_DELETED}, 'failed', 'pending'),
           next_attempt_at = iif(${IS_DELETED}, null, ?6),
           terminal_at = iif(${IS_DELETED}, ?11, null),
           final_outcome = iif(${IS_DELETED}, 'endpoint_deleted', null)
         where ${KEY} and status = 'processing' and token = ?5`,
      )
      .bind(
        ...key,
        token,
        delivery.nextAttemptAt,
        delivery.failureCount,
        delivery.relayFaultCount,
        attempt.statusCode,
        attempt.errorClass,
        attempt.respondedAt,
      );
  }
  return db
    .prepare(
      `update delivery set status = ?6, final_outcome = ?7, terminal_at = ?8, token = null, locked_until = null,
         next_attempt_at = null, hold_until = null, last_status_code = ?9, last_error_class = ?10
       where ${KEY} and terminal_at is null and (token = ?5 or ?6 = 'succeeded')`,
    )
    .bind(
      ...key,
      token,
      delivery.status,
      delivery.finalOutcome,
      attempt.respondedAt,
      attempt.statusCode,
      attempt.errorClass,
    );
}

/**
 * Where nothing orders a lane, what has failed stands behind all that has not been tried; where something does, what was
 * under way before it came there stands where its acceptance puts it. Two rows more, and none for all others. A statement of
 * its own, since one that names a column of an index pays for the index whatever the column was.
 */
function goToPlace(db: D1Database, { tenantId, eventId, endpointId, replayNo, attemptNumber }: Closing) {
  return db
    .prepare(
      `update delivery set lane_key = iif(lane_key = ' ' || event_id, ${retryKey("event_id")}, lane_key),
         lane_position = ${placeOf("lane_position")}
       where ${KEY} and status = 'pending' and attempt_count = ?5 and hold_until is null
         and (+lane_key = ' ' || event_id or ${isAwayFromPlace("lane_position")})`,
    )
    .bind(tenantId, eventId, endpointId, replayNo, attemptNumber);
}
