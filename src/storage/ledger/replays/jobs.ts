import { deliveryId } from "../../../core/ids.ts";
import type { PageRequest } from "../../../core/model.ts";
import {
  MAX_COUNTED,
  MAX_REPLAY_ENDPOINTS,
  MAX_RUNNING_REPLAYS,
  MAX_SAMPLE,
  REPLAY_KEPT_MS,
  statusesOf,
  type Replay,
  type ReplayFilter,
} from "../../../core/replay.ts";
import { eventsBefore, isMeant, replayableAnywhere, replayableAt } from "./meant.ts";

type Row = Record<string, any>;

/** What a bounded count found. `matched` is null where it did not come to the end. */
export interface ReplayCount {
  matched: number | null;
  matchedAtLeast: number;
  sample: string[];
}

const COLUMNS = `id, state, filter, to_subscription_id, retry_policy, include_replayed, expected, expected_at_least, sample,
  looked_at, found, replayed, skipped, error, created_at, started_at, finished_at`;
const SELECT = `select ${COLUMNS} from replay where tenant_id = ?1 and id = ?2`;
const OLD_ROWS_DELETED_AT_ONCE = 100;
/** Whether tenant ?1 may have one more that runs. replay_running. */
const HAS_ROOM = `(select count(*) from replay x where x.tenant_id = ?1 and x.state = 'running') < ${MAX_RUNNING_REPLAYS}`;

/** The rows of bulk replays, as operators ask for them. */
export function createReplayJobLedger(db: D1Database, maxEndpoints = MAX_REPLAY_ENDPOINTS) {
  /** A part for each endpoint that has what can be replayed, where the replay of ?2 does not run yet and may. */
  const insertParts = (tenantId: string, id: string, endpointId: string | null, now: number): D1PreparedStatement => {
    const may = `exists (select 1 from replay where tenant_id = ?1 and id = ?2 and state = 'dry_run') and ${HAS_ROOM}`;
    const replayable = "tenant_id = ?1 and terminal_at is not null and status <> 'succeeded'";
    const from = "delivery indexed by delivery_replayable";
    // A loose scan: one row of the index an endpoint. One more than may be shows that there are too many.
    const found = `with recursive ep (id, n) as (
        select (select min(endpoint_id) from ${from} where ${replayable}), 1
        union all
        select (select min(endpoint_id) from ${from} where ${replayable} and endpoint_id > ep.id), n + 1
        from ep where ep.id is not null and n <= ${maxEndpoints})
      select ?1, ?2, id, ?4 from ep where id is not null and ?3 is null and ${may}`;
    return db
      .prepare(
        `insert into replay_part (tenant_id, replay_id, endpoint_id, next_step_at)
         ${endpointId === null ? found : `select ?1, ?2, ?3, ?4 where ${may}`}
         on conflict do nothing`,
      )
      .bind(tenantId, id, endpointId, now);
  };
  /**
   * It runs from here on, and is over at once where there is nothing to walk, or too much: a part of what is meant must not pass
   * for all of it.
   */
  const begin = (tenantId: string, id: string, now: number): D1PreparedStatement[] => [
    db
      .prepare(
        `update replay set state = 'running', started_at = ?3
         where tenant_id = ?1 and id = ?2 and state = 'dry_run' and ${HAS_ROOM}`,
      )
      .bind(tenantId, id, now),
    db
      .prepare(
        `update replay set state = 'failed', error = ?4, finished_at = ?3
         where tenant_id = ?1 and id = ?2 and state = 'running' and (
           select count(*) from replay_part p where p.tenant_id = ?1 and p.replay_id = ?2) > ${maxEndpoints}`,
      )
      .bind(tenantId, id, now, `More than ${maxEndpoints} endpoints have something to be replayed: name one.`),
    db
      .prepare(
        `delete from replay_part where tenant_id = ?1 and replay_id = ?2
           and exists (select 1 from replay r where r.tenant_id = ?1 and r.id = ?2 and r.state = 'failed')`,
      )
      .bind(tenantId, id),
    completeWhenDone(db, tenantId, id, now),
  ];
  const select = (tenantId: string, id: string) => db.prepare(SELECT).bind(tenantId, id);

  return {
    /**
     * How much a replay would take, by a look at no more than MAX_COUNTED deliveries, and some of them. delivery_replayable,
     * then primary keys.
     */
    async countReplayable(
      tenantId: string,
      filter: ReplayFilter,
      includeReplayed: boolean,
      now: number,
    ): Promise<ReplayCount> {
      const limit = MAX_COUNTED + 1;
      const looked = filter.endpointId === null ? replayableAnywhere(limit) : replayableAt(filter, limit);
      const from = `(${looked}) k
        cross join delivery d on d.tenant_id = ?1 and d.event_id = k.event_id and d.endpoint_id = k.endpoint_id
          and d.replay_no = k.replay_no
        cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id`;
      const statuses = statusesOf(filter).map((status) => `'${status}'`);
      const meant = `d.status in (${statuses.join(", ")}) and d.expires_at > ?6 and ${isMeant("?5", "?6", "?7")}`;
      const statement = (sql: string) =>
        db
          .prepare(sql)
          .bind(
            tenantId,
            filter.endpointId,
            "",
            eventsBefore(filter),
            JSON.stringify(filter),
            now,
            includeReplayed ? 1 : 0,
          );
      const [counts, sample] = await db.batch<Row>([
        statement(`select count(*) as looked_at, coalesce(sum(${meant}), 0) as n from ${from}`),
        statement(`select d.event_id, d.endpoint_id, d.replay_no from ${from} where ${meant} limit ${MAX_SAMPLE}`),
      ]);
      const { looked_at: lookedAt, n } = counts!.results[0]!;
      return {
        matched: lookedAt > MAX_COUNTED ? null : n,
        matchedAtLeast: n,
        sample: sample!.results.map((row) =>
          deliveryId({ eventId: row["event_id"], endpointId: row["endpoint_id"], replayNo: row["replay_no"] }),
        ),
      };
    },

    /**
     * Puts a replay on record and, unless it is a dry run, begins it at this endpoint, or at all. Null, and nothing stored, when
     * the tenant has as many running as it may. Done again, it changes nothing. Old ones go.
     */
    async insertReplayJob(
      tenantId: string,
      row: Replay,
      endpointId: string | null,
      now: number,
    ): Promise<Replay | null> {
      const runs = row.state === "running";
      const results = await db.batch<Row>([
        db
          .prepare(
            `delete from replay where (tenant_id, id) in (
               select tenant_id, id from replay where tenant_id = ?1 and created_at < ?2 and state <> 'running'
               limit ${OLD_ROWS_DELETED_AT_ONCE})`,
          )
          .bind(tenantId, now - REPLAY_KEPT_MS),
        db
          .prepare(
            `insert into replay (tenant_id, id, filter, to_subscription_id, retry_policy, include_replayed, expected,
               expected_at_least, sample, created_at)
             select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 where ?11 = 0 or ${HAS_ROOM}
             on conflict do nothing`,
          )
          .bind(
            tenantId,
            row.id,
            JSON.stringify(row.filter),
            row.toSubscriptionId,
            row.retryPolicy && JSON.stringify(row.retryPolicy),
            row.includeReplayed ? 1 : 0,
            row.expected,
            row.expectedAtLeast,
            JSON.stringify(row.sample),
            row.createdAt,
            runs ? 1 : 0,
          ),
        ...(runs ? [insertParts(tenantId, row.id, endpointId, now), ...begin(tenantId, row.id, now)] : []),
        select(tenantId, row.id),
      ]);
      const stored = results.at(-1)!.results[0];
      return stored ? toReplay(stored) : null;
    },

    /** Begins a dry run; the row as it is then, still a dry run when the tenant has as many running as it may. */
    async startReplay(tenantId: string, id: string, endpointId: string | null, now: number): Promise<Replay | null> {
      const results = await db.batch<Row>([
        insertParts(tenantId, id, endpointId, now),
        ...begin(tenantId, id, now),
        select(tenantId, id),
      ]);
      const row = results.at(-1)!.results[0];
      return row ? toReplay(row) : null;
    },

    /** Ends one that has not ended, after which no step of it writes anything; the row as it is then. */
    async cancelReplay(tenantId: string, id: string, now: number): Promise<Replay | null> {
      const results = await db.batch<Row>([
        ...endReplay(db, tenantId, id, "cancelled", null, now),
        select(tenantId, id),
      ]);
      const row = results.at(-1)!.results[0];
      return row ? toReplay(row) : null;
    },

    /** Primary key. */
    async findReplay(tenantId: string, id: string): Promise<Replay | null> {
      const row = await select(tenantId, id).first<Row>();
      return row && toReplay(row);
    },

    /** Newest first. replay_created. */
    async listReplays(tenantId: string, { limit, after }: PageRequest): Promise<Replay[]> {
      const { results } = await db
        .prepare(
          `select ${COLUMNS} from replay where tenant_id = ?1 and (created_at, id) < (?2, ?3)
           order by created_at desc, id desc limit ?4`,
        )
        .bind(tenantId, after?.createdAt ?? 2 ** 48, after?.id ?? "", limit)
        .all<Row>();
      return results.map(toReplay);
    },
  };
}

/** A replay of which no part is left has done all it had to. */
export function completeWhenDone(db: D1Database, tenantId: string, id: string, now: number): D1PreparedStatement {
  return db
    .prepare(
      `update replay set state = 'completed', finished_at = ?3
       where tenant_id = ?1 and id = ?2 and state = 'running'
         and not exists (select 1 from replay_part p where p.tenant_id = ?1 and p.replay_id = ?2)`,
    )
    .bind(tenantId, id, now);
}

/** Ends a replay that has not ended. What it has made goes on. */
export function endReplay(
  db: D1Database,
  tenantId: string,
  id: string,
  state: "cancelled" | "failed",
  error: string | null,
  now: number,
): D1PreparedStatement[] {
  return [
    db
      .prepare(
        `update replay set state = ?3, error = ?4, finished_at = ?5
         where tenant_id = ?1 and id = ?2 and state in ('dry_run', 'running')`,
      )
      .bind(tenantId, id, state, error, now),
    db.prepare("delete from replay_part where tenant_id = ? and replay_id = ?").bind(tenantId, id),
  ];
}

export function toReplay(row: Row): Replay {
  return {
    id: row["id"],
    state: row["state"],
    filter: JSON.parse(row["filter"]),
    toSubscriptionId: row["to_subscription_id"],
    retryPolicy: row["retry_policy"] && JSON.parse(row["retry_policy"]),
    includeReplayed: row["include_replayed"] === 1,
    expected: row["expected"],
    expectedAtLeast: row["expected_at_least"],
    sample: JSON.parse(row["sample"]),
    lookedAt: row["looked_at"],
    found: row["found"],
    replayed: row["replayed"],
    skipped: JSON.parse(row["skipped"]),
    error: row["error"],
    createdAt: row["created_at"],
    startedAt: row["started_at"],
    finishedAt: row["finished_at"],
  };
}
