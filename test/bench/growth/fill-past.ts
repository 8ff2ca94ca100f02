import type { DatabaseSync } from "node:sqlite";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";
import { insertSources, type FilledTenant } from "./fill-config.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DAYS = 25;
const SOURCES = 8;
const RETENTION_MS = 30 * DAY_MS;
/** What waits is not due while somebody measures. */
const NOT_BEFORE_MS = 6 * HOUR_MS;

/** How much of it is from the last hour, and from the day before that: recent hours are what is asked about. */
const LAST_HOUR = 0.01;
const LAST_DAY = 0.05;

/** What comes of deliveries, of a thousand, and how many requests each makes: 2.5 in the mean. */
const KINDS = [
  { kind: "succeeded", of: 700, attempts: "1" },
  { kind: "retried", of: 190, attempts: "3 + r % 7" },
  { kind: "exhausted", of: 63, attempts: "10" },
  { kind: "rejected", of: 20, attempts: "1" },
  { kind: "expired", of: 10, attempts: "7" },
  { kind: "refused", of: 17, attempts: "0" },
];
/** Of endpoints, in turn; each also times out now and then. */
const ERRORS = ["http_5xx", "http_4xx", "timeout", "rate_limited", "connect", "http_5xx", "reset", "http_3xx"];
/** One dead letter in so many has been replayed, with success. */
const REPLAYED_ONE_IN = 3;

export interface Past {
  deliveries: number;
  attempts: number;
}

/**
 * A tenant's deliveries of 25 days, each of an event of its own: successes, retries that helped, dead letters, of which some were
 * replayed, what expired and what was refused, and what waits for a retry; from several sources, in four versions, by four workers
 * in three regions. Rows are made in the order of their keys, which is by far the fastest.
 */
export function insertPast(db: DatabaseSync, tenant: FilledTenant, count: number, now: number): Past {
  const sources = insertSources(db, tenant, SOURCES);
  plan(db, tenant, sources, count, now);
  const given = { tenant: tenant.id };
  const events = db
    .prepare(
      `insert into event (tenant_id, id, source_id, type, schema_version, idempotency_key, payload_ref, payload_sha256,
         payload_size, payload_is_json, content_type, occurred_at, relayed_at, relay_region, expires_at, dispatched_at,
         delivery_count)
       select :tenant, id, s.source_id, 'filled.n' || (i % 20), 1 + r % 4, 'key-' || i, '30d/' || :tenant || '/' || id || '#0',
         randomblob(32), 1000, 1, 'application/json', at - r % 3000, at,
         case r % 3 when 0 then 'FRA' when 1 then 'IAD' else 'SIN' end, at + ${RETENTION_MS}, at, 1
       from temp.plan p cross join temp.source_at s on s.k = p.r % ${SOURCES} order by i`,
    )
    .run(given);
  const insertDelivery = (replayNo: 0 | 1) =>
    db
      .prepare(
        `insert into delivery (tenant_id, event_id, endpoint_id, replay_no, subscription_id, status, attempt_count,
           failure_count, retry_policy_id, created_at, scheduled_at, next_attempt_at, last_attempt_at, last_error_class,
           last_status_code, terminal_at, final_outcome, replay_of, replayed_as, filter_match_ms, filter_match_steps,
           relay_region, expires_at, schema_version)
         ${replayNo === 0 ? FIRST_DELIVERIES : REPLAYS}`,
      )
      .run({ ...given, policy: tenant.retryPolicyId, ...(replayNo === 0 && { now }) });
  insertDelivery(0);
  const replays = insertDelivery(1);
  const attempts = db.prepare(ATTEMPTS).run(given);
  const ofReplays = db.prepare(ATTEMPTS_OF_REPLAYS).run(given);
  db.exec("drop table temp.plan");
  // Within the last ten days, some enabled again.
  for (const noun of ["endpoint", "subscription"]) {
    db.prepare(
      `update ${noun} set last_disabled_at = :now - abs(random()) % ${10 * DAY_MS}
       where tenant_id = :tenant and unicode(substr(id, -1)) % 5 = 0`,
    ).run({ ...given, now });
  }
  return {
    deliveries: Number(events.changes) + Number(replays.changes),
    attempts: Number(attempts.changes) + Number(ofReplays.changes),
  };
}

const FIRST_DELIVERIES = `
  select :tenant, id, x.endpoint_id, 0, x.subscription_id,
    case when made < planned then 'pending' when kind in ('succeeded', 'retried') then 'succeeded'
      when kind in ('exhausted', 'rejected') then 'dead_letter' when kind = 'refused' then 'failed' else kind end,
    made, made - (made = planned and kind in ('succeeded', 'retried')), :policy, at, at,
    iif(made < planned, max(:now + ${NOT_BEFORE_MS}, at + s.after_ms), null), iif(made > 0, at + l.after_ms + 40, null),
    iif(made = 0 or made = planned and kind in ('succeeded', 'retried'), null, x.error_class),
    case when made = 0 then null when made = planned and kind in ('succeeded', 'retried') then 200 else x.status_code end,
    iif(made < planned, null, at + coalesce(l.after_ms, 0) + 60),
    case when made < planned then null when kind in ('succeeded', 'retried') then 'delivered'
      when kind = 'refused' then 'endpoint_disabled' else kind end,
    null, iif(is_replayed, 1, null), iif(r % 2, null, (r % 40) / 10.0), iif(r % 2, null, r % 300), 'FRA', at + ${RETENTION_MS}, 1 + r % 4
  from temp.plan p cross join temp.endpoint_at x on x.k = p.endpoint
  left join temp.schedule l on l.n = p.made left join temp.schedule s on s.n = p.made + 1 order by i`;

/** Five minutes after its delivery died. */
const REPLAYED_AT = "at + l.after_ms + 300060";

const REPLAYS = `
  select :tenant, id, x.endpoint_id, 1, x.subscription_id, 'succeeded', 1, 0, :policy, ${REPLAYED_AT}, ${REPLAYED_AT}, null,
    ${REPLAYED_AT} + 40, null, 200, ${REPLAYED_AT} + 60, 'delivered', 0, null, null, null, 'FRA', at + ${RETENTION_MS}, 1 + r % 4
  from temp.plan p cross join temp.endpoint_at x on x.k = p.endpoint cross join temp.schedule l on l.n = p.made
  where is_replayed order by i`;

const worker = (n: string) => `'b7bd969c-d71f-44ce-80b3-260de0a1b7f9.h24e1ce' || (${n} % 4) || '.queue'`;
const ATTEMPT_COLUMNS = `tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, responded_at, latency_ms,
  status_code, outcome_class, error_class, response_body_sha256, response_headers_json, worker_id, relay_region,
  endpoint_revision, signing_secret_ids`;

/** The last of a success succeeds; one in seven of the others times out, whatever its endpoint mostly does. */
const ATTEMPTS = `
  insert into attempt (${ATTEMPT_COLUMNS})
  select :tenant, id, endpoint_id, 0, n, at + after_ms + 40, at + after_ms + 60, 20 + r % 400, iif(is_lost, null, code),
    iif(is_success, 'success', iif(is_lost, 'unreachable', iif(kind = 'rejected', 'rejected', 'transient'))),
    iif(is_success, null, iif(is_late, 'timeout', error_class)), iif(is_lost, null, body), '{"content-type":"text/plain"}',
    ${worker("(r + n)")}, case (r + n) % 3 when 0 then 'FRA' when 1 then 'IAD' else 'SIN' end, 1, '["sec_0000000000000000"]'
  from (
    select *, iif(is_success, 200, iif(is_late, null, status_code)) as code,
      not is_success and (is_late or status_code is null) as is_lost from (
      select p.*, x.*, s.n, s.after_ms, p.kind in ('succeeded', 'retried') and s.n = p.planned as is_success,
        (p.r + s.n) % 7 = 0 as is_late
      from temp.plan p cross join temp.endpoint_at x on x.k = p.endpoint
      cross join temp.schedule s on s.n <= p.made order by p.i, s.n))`;

const ATTEMPTS_OF_REPLAYS = `
  insert into attempt (${ATTEMPT_COLUMNS})
  select :tenant, id, x.endpoint_id, 1, 1, ${REPLAYED_AT} + 40, ${REPLAYED_AT} + 60, 20, 200, 'success', null, x.body,
    '{"content-type":"text/plain"}', ${worker("r")}, 'FRA', 1, '["sec_0000000000000000"]'
  from temp.plan p cross join temp.endpoint_at x on x.k = p.endpoint cross join temp.schedule l on l.n = p.made
  where is_replayed order by i`;

/** What becomes of each delivery: by chance that is the same each time. */
function plan(db: DatabaseSync, tenant: FilledTenant, sources: string[], count: number, now: number): void {
  const { delays_seconds: delays } = DEFAULT_RETRY_POLICY;
  const after = [0];
  for (const delay of delays) after.push(after.at(-1)! + delay * 1_000);
  table(
    db,
    "schedule (n integer primary key, after_ms integer)",
    after.map((ms, n) => [n + 1, ms]),
  );
  table(
    db,
    "source_at (k integer primary key, source_id text)",
    sources.map((id, k) => [k, id]),
  );
  table(
    db,
    "endpoint_at (k integer primary key, endpoint_id text, subscription_id text, error_class text, status_code integer, body blob)",
    tenant.endpoints.map(({ id, subscriptionId }, k) => {
      const error = ERRORS[k % ERRORS.length]!;
      return [k, id, subscriptionId, error, STATUS[error] ?? null, new Uint8Array(32).fill(k)];
    }),
  );
  let below = 0;
  const cases = (value: (of: (typeof KINDS)[number]) => string) =>
    KINDS.map((one) => `when r % 1000 < ${(below += one.of)} then ${value(one)}`).join(" ");
  const kind = `case ${cases((one) => `'${one.kind}'`)} end`;
  below = 0;
  const planned = `case ${cases((one) => one.attempts)} end`;
  db.exec(`create temp table plan (i integer primary key, id text, at integer, r integer, endpoint integer, kind text,
    planned integer, made integer, is_replayed integer)`);
  // An even share of the days, but for the last, which is busier, and its last hour busier still.
  const edge = [now - DAYS * DAY_MS, now - DAY_MS, now - HOUR_MS, now];
  const share = [1 - LAST_HOUR - LAST_DAY, LAST_DAY, LAST_HOUR];
  const until = [0, share[0]!, share[0]! + share[1]!, 1];
  const pieces = share.map(
    (part, k) =>
      `when i < ${until[k + 1]! * count} then ${edge[k]!} + (i - ${until[k]! * count}) * ${(edge[k + 1]! - edge[k]!) / (part * count)}`,
  );
  db.prepare(
    `insert into temp.plan
     with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < :count),
     drawn as (select i, cast(case ${pieces.join(" ")} end as integer) as at, i * 2654435761 % 4294967296 / 4096 as r from n),
     planned as (select *, ${kind} as kind, ${planned} as planned from drawn)
     select i, event_id(at), at, r, (r / 1000) % ${tenant.endpoints.length}, kind, planned, made,
       made = planned and kind in ('exhausted', 'rejected') and i % ${REPLAYED_ONE_IN} = 0
     from (select *, iif(at < ${now - 4 * DAY_MS}, planned,
       (select count(*) from temp.schedule s where s.n <= planned and at + s.after_ms < ${now - 1_000})) as made from planned)`,
  ).run({ count });
}

const STATUS: Record<string, number> = { http_5xx: 503, http_4xx: 404, rate_limited: 429, http_3xx: 301 };

function table(db: DatabaseSync, columns: string, rows: (string | number | null | Uint8Array)[][]): void {
  const name = columns.split(" ")[0]!;
  db.exec(`drop table if exists temp.${name}`);
  db.exec(`create temp table ${columns}`);
  const insert = db.prepare(`insert into temp.${name} values (${rows[0]!.map(() => "?").join(", ")})`);
  for (const row of rows) insert.run(...row);
}
