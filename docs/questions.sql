-- The questions that an operator asks, for people with SQL: each statement stands by itself and can be pasted into
-- `wrangler d1 execute`, once its first line names the tenant. docs/questions.md says how; the API answers the same under
-- /v1/reports. Times of the ledger are milliseconds since 1970 UTC.

-- 1. Which subscriptions have failed deliveries in the last hour, grouped by error class?
-- GET /v1/reports/failures. Reads what failed in that hour (attempt_failed, delivery_ended), and each delivery by its key.
with
  input (tenant_id, since) as (select 'ten_…', unixepoch('subsec') * 1000 - 3600000),
  seen as (
    -- Requests that did not succeed, less faults of the relay.
    select d.subscription_id, d.endpoint_id, d.delivery_id, a.error_class, null as final_outcome,
      1 as attempts, 0 as ended, a.requested_at as at
    from input
    cross join attempt a on a.tenant_id = input.tenant_id and a.requested_at >= input.since and a.outcome_class <> 'success'
    cross join delivery_view d on d.tenant_id = a.tenant_id and d.event_id = a.event_id
      and d.endpoint_id = a.endpoint_id and d.replay_no = a.replay_no
    where a.error_class not in ('internal', 'abandoned')
    union all
    -- Deliveries that ended so, by their last error; where they have none, by why they ended.
    select d.subscription_id, d.endpoint_id, d.delivery_id,
      iif(d.last_error_class in ('internal', 'abandoned'), null, d.last_error_class),
      iif(d.last_error_class not in ('internal', 'abandoned'), null, d.final_outcome), 0, 1, d.terminal_at
    from input
    cross join (values ('failed'), ('dead_letter'), ('expired')) way
    cross join delivery_view d on d.tenant_id = input.tenant_id and d.status = way.column1
      and d.terminal_at >= input.since and d.terminal_at is not null and d.status <> 'succeeded'),
  -- A delivery counts once in a class. Test sends do not count.
  one as (
    select subscription_id, endpoint_id, delivery_id, error_class, final_outcome, sum(attempts) as attempts,
      max(ended) as ended, min(at) as first_at, max(at) as last_at
    from seen where substr(subscription_id, 5) <> substr(endpoint_id, 4) group by 1, 2, 3, 4, 5)
select subscription_id, endpoint_id, error_class, final_outcome, count(*) as deliveries, sum(attempts) as attempts,
  sum(ended) as ended, strftime('%Y-%m-%dT%H:%M:%fZ', min(first_at) / 1000.0, 'unixepoch') as first_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', max(last_at) / 1000.0, 'unixepoch') as last_at,
  substr(max(printf('%015d', last_at) || delivery_id), 16) as example_delivery_id
from one group by 1, 2, 3, 4 order by deliveries desc, one.attempts desc, 1, 3, 4;

-- 2. What did the receiver answer to each attempt of delivery X, and how often in a row the same?
-- GET /v1/deliveries/{id}. Reads the delivery and its attempts by their key. What is ours (internal, abandoned) or still open neither
-- counts nor ends a run of same answers; no answer at all ends it.
with
  input (tenant_id, delivery_id) as (select 'ten_…', 'dlv_…'),
  tried as (
    select a.*, lower(hex(a.response_body_sha256)) as sha256,
      a.outcome_class is not null and coalesce(a.error_class, '') not in ('internal', 'abandoned') as said
    from input
    cross join delivery_view d on d.tenant_id = input.tenant_id and d.event_id = 'evt_' || substr(input.delivery_id, 5, 26)
      and d.endpoint_id = 'ep_' || substr(input.delivery_id, 31, 16) and d.delivery_id = input.delivery_id
    cross join attempt a on a.tenant_id = d.tenant_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id
      and a.replay_no = d.replay_no),
  compared as (
    select *, status_code is null or status_code is not lag(status_code) over answers or sha256 is not lag(sha256) over answers as differs
    from tried window answers as (partition by said order by attempt_number)),
  runs as (select *, sum(differs) over (partition by said order by attempt_number) as run from compared)
select attempt_number, strftime('%Y-%m-%dT%H:%M:%fZ', requested_at / 1000.0, 'unixepoch') as requested_at, latency_ms, status_code,
  outcome_class, error_class, nullif(sha256, '') as response_body_sha256,
  iif(said and status_code is not null, row_number() over (partition by said, run order by attempt_number), null) as same_answer_run
from runs order by attempt_number;

-- 3. How long from occurred_at to the first successful attempt, per source? And where did the time go?
-- GET /v1/reports/latency. Reads what was relayed in the last hour by its key, with the attempts of each delivery by theirs.
-- Percentiles by nearest rank, in milliseconds; replays and test sends are left out, and what has not arrived is counted beside them.
with
  input (tenant_id, since) as (select 'ten_…', unixepoch('subsec') * 1000 - 3600000),
  -- Event ids begin with their time, ten digits of five bits.
  place (tenant_id, first_id) as (
    select tenant_id, (select 'evt_' || group_concat(substr('0123456789abcdefghjkmnpqrstvwxyz', (since >> column1 & 31) + 1, 1), '')
      from (values (45), (40), (35), (30), (25), (20), (15), (10), (5), (0))) from input),
  relayed as (
    select e.* from place
    cross join event e on e.tenant_id = place.tenant_id and e.id >= place.first_id
    where e.expires_at > unixepoch('subsec') * 1000 and e.type <> 'hooklane.test'),
  timed as materialized (
    select e.source_id, e.id, e.occurred_at, e.relayed_at, d.created_at, d.scheduled_at, d.terminal_at,
      (select a.requested_at from attempt a where a.tenant_id = d.tenant_id and a.event_id = d.event_id
        and a.endpoint_id = d.endpoint_id and a.replay_no = 0 and a.attempt_number = 1) as requested_at,
      (select min(a.responded_at) from attempt a where a.tenant_id = d.tenant_id and a.event_id = d.event_id
        and a.endpoint_id = d.endpoint_id and a.replay_no = 0 and a.outcome_class = 'success') as delivered_at
    from relayed e cross join delivery d on d.tenant_id = e.tenant_id and d.event_id = e.id
    where d.replay_no = 0 and substr(d.subscription_id, 5) <> substr(d.endpoint_id, 4)),
  value (source_id, measure, ms) as (
    select source_id, 'occurred_to_delivered', delivered_at - occurred_at from timed where delivered_at is not null
    union all select source_id, 'occurred_to_relayed', relayed_at - occurred_at from relayed
    union all select source_id, 'relayed_to_first_request', requested_at - relayed_at from timed where requested_at is not null
    union all select source_id, 'limits_wait', scheduled_at - created_at from timed where scheduled_at is not null
    union all select source_id, 'relay_lag', requested_at - scheduled_at from timed
      where requested_at is not null and scheduled_at is not null),
  counted as (select source_id, measure, ms, count(*) as n from value group by 1, 2, 3),
  ranked as (
    select source_id, measure, ms, sum(n) over (partition by source_id, measure order by ms) as upto,
      sum(n) over (partition by source_id, measure) as n
    from counted),
  arrived as (select source_id, count(*) as deliveries, count(delivered_at) as delivered from timed group by 1),
  -- Of an event that is not dispatched, deliveries are missing yet.
  undelivered as (
    select source_id, count(*) as events from (
      select source_id, id from timed where delivered_at is null
      union select source_id, id from relayed where dispatched_at is null)
    group by 1)
select s.name as source_name, r.measure, max(r.n) as n, min(iif(upto >= (n * 50 + 99) / 100, ms, null)) as p50,
  min(iif(upto >= (n * 95 + 99) / 100, ms, null)) as p95, min(iif(upto >= (n * 99 + 99) / 100, ms, null)) as p99,
  coalesce(arrived.deliveries, 0) as deliveries, coalesce(arrived.delivered, 0) as delivered,
  coalesce(undelivered.events, 0) as undelivered_events
from ranked r
cross join source s on s.tenant_id = (select tenant_id from input) and s.id = r.source_id
left join arrived on arrived.source_id = r.source_id
left join undelivered on undelivered.source_id = r.source_id
group by r.source_id, r.measure order by 1, 2;

-- 4. Which subscriptions get payload version 3 today, pinned or not, and what did they receive lately?
-- GET /v1/reports/schema-versions. Reads the events of the last hour by their key, and the deliveries of that hour of those
-- subscriptions alone (delivery_subscription). A subscription without a pin gets what the newest of these events carries, or without
-- one the newest registered version; where another subscription of the endpoint wins whatever the event, the API says so besides.
with
  input (tenant_id, schema_version, since) as (select 'ten_…', 3, unixepoch('subsec') * 1000 - 3600000),
  place (tenant_id, schema_version, since, first_id) as (
    select *, (select 'evt_' || group_concat(substr('0123456789abcdefghjkmnpqrstvwxyz', (since >> column1 & 31) + 1, 1), '')
      from (values (45), (40), (35), (30), (25), (20), (15), (10), (5), (0))) from input),
  -- Of each type its newest event; SQLite takes the other columns from the row that has the maximum.
  newest as materialized (
    select e.type, max(e.id) as id, e.schema_version, e.variants from place
    cross join event e on e.tenant_id = place.tenant_id and e.id >= place.first_id
    where e.expires_at > unixepoch('subsec') * 1000 group by 1),
  registered as materialized (select t.* from input cross join event_type t on t.tenant_id = input.tenant_id),
  -- Versions that can be had: what the newest event carries, or without one whatever is registered.
  carried (type, version) as (
    select type, schema_version from newest
    union select newest.type, v.value ->> 0 from newest cross join json_each(newest.variants) v
    union select name, schema_version from registered where name not in (select type from newest)),
  live as materialized (
    select type, version from carried c
    where not exists (select 1 from registered t where t.name = c.type and t.schema_version = c.version and t.retired_at is not null)),
  asking as materialized (
    select s.* from input
    cross join subscription s on s.tenant_id = input.tenant_id and s.deleted_at is null and s.disabled_at is null
    cross join endpoint ep on ep.tenant_id = s.tenant_id and ep.id = s.endpoint_id and ep.deleted_at is null),
  type (name) as (
    select type from newest union select name from registered
    union select event_type_pattern from asking where event_type_pattern not like '%*%'),
  -- A pattern and a type lose a segment at a time, for as long as they agree.
  matching (id, type, pattern, rest) as (
    select asking.id, type.name, event_type_pattern || '.', type.name || '.' from asking cross join type
    where (type.name like 'hooklane.%') = (event_type_pattern like 'hooklane.%')
    union all
    select id, type, substr(pattern, instr(pattern, '.') + 1), substr(rest, instr(rest, '.') + 1) from matching
    where pattern <> '' and rest <> '' and substr(pattern, 1, instr(pattern, '.')) in ('*.', substr(rest, 1, instr(rest, '.')))),
  matched as materialized (select distinct id, type from matching where rest = '' and pattern = '' or pattern = '*.' and rest <> ''),
  -- What each gets of each type: its pin, if that can be had, or the newest.
  gets as (
    select s.*, m.type, coalesce(s.schema_version, (select max(version) from live where live.type = m.type)) as version
    from matched m cross join asking s on s.id = m.id
    where (s.schema_version is null
        or not exists (select 1 from registered t where t.name = m.type and t.schema_version = s.schema_version and t.retired_at is not null)
        and (s.schema_version in (select version from carried c where c.type = m.type) or m.type not in (select type from newest)))
      and not exists (select 1 from registered t where t.name = m.type and t.required_scope is not null
        and instr(' ' || coalesce(s.entitlement_scope, '') || ' ', ' ' || t.required_scope || ' ') = 0)),
  got as (select gets.* from input cross join gets where gets.version = input.schema_version),
  received as (
    select d.subscription_id, e.type, coalesce(d.schema_version, e.schema_version) as version, count(*) as n, max(d.terminal_at) as last_at
    from input
    cross join (select distinct id from got) s
    cross join delivery d on d.subscription_id = s.id and d.created_at >= input.since and +d.tenant_id = input.tenant_id
    cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
    where d.status = 'succeeded' and d.expires_at > unixepoch('subsec') * 1000 group by 1, 2, 3)
select g.type as event_type, g.version as schema_version, g.id as subscription_id, g.endpoint_id,
  g.schema_version as pinned_version, r.version as received_version, r.n as deliveries,
  strftime('%Y-%m-%dT%H:%M:%fZ', r.last_at / 1000.0, 'unixepoch') as last_at
from got g left join received r on r.subscription_id = g.id and r.type = g.type
order by 1, g.created_at, g.id, r.last_at desc;

-- 5. How many deliveries are in dead letter now, by subscription and by reason?
-- GET /v1/reports/dead-letters. Reads the tenant's dead letters in delivery_ended, and no table.
with input (tenant_id) as (select 'ten_…')
select d.subscription_id, d.endpoint_id, d.final_outcome, count(*) as deliveries,
  strftime('%Y-%m-%dT%H:%M:%fZ', min(d.terminal_at) / 1000.0, 'unixepoch') as oldest_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', max(d.terminal_at) / 1000.0, 'unixepoch') as newest_at,
  substr(max(printf('%015d', d.terminal_at) || d.delivery_id), 16) as example_delivery_id
from input
cross join delivery_view d on d.tenant_id = input.tenant_id and d.status = 'dead_letter'
  and d.terminal_at is not null and d.status <> 'succeeded' and d.replayed_as is null
group by 1, 2, 3 order by 4 desc, 1, 3;

-- 6. Which endpoints and subscriptions were disabled in the last seven days, enabled again or not?
-- GET /v1/reports/disabled. Reads those alone (endpoint_disabled, subscription_disabled).
with input (tenant_id, since) as (select 'ten_…', unixepoch('subsec') * 1000 - 7 * 86400000)
select s.endpoint_id, s.id as subscription_id,
  strftime('%Y-%m-%dT%H:%M:%fZ', s.last_disabled_at / 1000.0, 'unixepoch') as last_disabled_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', s.disabled_at / 1000.0, 'unixepoch') as disabled_at, null as disabled_reason
from input cross join subscription s on s.tenant_id = input.tenant_id and s.last_disabled_at >= input.since
  and s.last_disabled_at is not null and s.deleted_at is null
union all
select ep.id, null, strftime('%Y-%m-%dT%H:%M:%fZ', ep.last_disabled_at / 1000.0, 'unixepoch'),
  strftime('%Y-%m-%dT%H:%M:%fZ', ep.disabled_at / 1000.0, 'unixepoch'), ep.disabled_reason
from input cross join endpoint ep on ep.tenant_id = input.tenant_id and ep.last_disabled_at >= input.since
  and ep.last_disabled_at is not null and ep.deleted_at is null
order by 3 desc, 1, 2;

-- 7. What is each endpoint still owed: since when, and how much?
-- GET /v1/reports/undelivered. Reads all that waits for queues in this database, whosever it is (delivery_due), and what is in the
-- lanes of the tenant's endpoints (delivery_lane).
with
  input (tenant_id) as (select 'ten_…'),
  open as (
    select d.* from input
    cross join (values ('pending'), ('processing')) state
    cross join delivery_view d on d.status = state.column1 and d.terminal_at is null and d.lane_key is null
      and +d.tenant_id = input.tenant_id
    union all
    select d.* from input
    cross join endpoint ep on ep.tenant_id = input.tenant_id and ep.deleted_at is null
    cross join delivery_view d on d.endpoint_id = ep.id and d.terminal_at is null and d.lane_key is not null
      and +d.tenant_id = input.tenant_id)
select endpoint_id, count(*) as depth, strftime('%Y-%m-%dT%H:%M:%fZ', min(created_at) / 1000.0, 'unixepoch') as oldest_at,
  substr(min(printf('%015d', created_at) || delivery_id), 16) as oldest_delivery_id
from open group by 1 order by min(created_at), 1;

-- 8. What came of requests, by worker and by region?
-- GET /v1/reports/attempts. Reads what failed in the last hour (attempt_failed), and what succeeded or is under way of the events
-- that were relayed in it, by their key.
with
  input (tenant_id, since) as (select 'ten_…', unixepoch('subsec') * 1000 - 3600000),
  place (tenant_id, since, first_id) as (
    select *, (select 'evt_' || group_concat(substr('0123456789abcdefghjkmnpqrstvwxyz', (since >> column1 & 31) + 1, 1), '')
      from (values (45), (40), (35), (30), (25), (20), (15), (10), (5), (0))) from input),
  seen as materialized (
    select a.worker_id, a.relay_region, iif(a.outcome_class is null, 'open', 'succeeded') as came_to
    from place
    cross join event e on e.tenant_id = place.tenant_id and e.id >= place.first_id
    cross join attempt a on a.tenant_id = e.tenant_id and a.event_id = e.id
    where (a.outcome_class is null or a.outcome_class = 'success') and e.expires_at > unixepoch('subsec') * 1000
    union all
    select a.worker_id, a.relay_region, iif(a.error_class in ('internal', 'abandoned'), 'relay_fault', a.outcome_class)
    from place
    cross join attempt a on a.tenant_id = place.tenant_id and a.requested_at >= place.since and a.outcome_class <> 'success'
    cross join event e on e.tenant_id = a.tenant_id and e.id = a.event_id
    where e.expires_at > unixepoch('subsec') * 1000),
  told as (
    select 'worker_id' as by, worker_id as value, came_to from seen
    union all select 'relay_region', relay_region, came_to from seen)
select by, value, sum(came_to = 'succeeded') as succeeded, sum(came_to = 'open') as open, sum(came_to = 'transient') as transient,
  sum(came_to = 'rejected') as rejected, sum(came_to = 'unreachable') as unreachable, sum(came_to = 'relay_fault') as relay_faults
from told group by 1, 2
order by 1, sum(came_to not in ('succeeded', 'open')) desc, 3 desc, 2;

-- 9. Which filters are slow?
-- GET /v1/reports/filters. Reads the deliveries of what was relayed in the last hour, by their key. Milliseconds are null where the
-- clock stands still while code runs.
with
  input (tenant_id, since) as (select 'ten_…', unixepoch('subsec') * 1000 - 3600000),
  place (tenant_id, first_id) as (
    select tenant_id, (select 'evt_' || group_concat(substr('0123456789abcdefghjkmnpqrstvwxyz', (since >> column1 & 31) + 1, 1), '')
      from (values (45), (40), (35), (30), (25), (20), (15), (10), (5), (0))) from input),
  filtered as materialized (
    select d.subscription_id, d.endpoint_id, d.filter_match_steps as steps, d.filter_match_ms as ms,
      row_number() over (partition by d.subscription_id order by d.filter_match_steps) as rank,
      count(*) over (partition by d.subscription_id) as n
    from place
    cross join delivery d on d.tenant_id = place.tenant_id and d.event_id >= place.first_id
    where d.filter_match_steps is not null and d.expires_at > unixepoch('subsec') * 1000)
select subscription_id, endpoint_id, n as deliveries, min(iif(rank >= (n * 95 + 99) / 100, steps, null)) as p95_steps,
  max(steps) as max_steps, max(ms) as max_ms
from filtered group by 1 order by p95_steps desc, max_steps desc, 1;

-- 10. What did an endpoint's own limits cost, and what is our lag?
-- GET /v1/reports/latency?by=endpoint. Reads what was relayed in the last hour by its key, with the first attempt of each delivery.
-- limits_wait is scheduled_at less created_at, relay_lag the first requested_at less scheduled_at; 95th percentiles by nearest rank.
with
  input (tenant_id, since) as (select 'ten_…', unixepoch('subsec') * 1000 - 3600000),
  place (tenant_id, first_id) as (
    select tenant_id, (select 'evt_' || group_concat(substr('0123456789abcdefghjkmnpqrstvwxyz', (since >> column1 & 31) + 1, 1), '')
      from (values (45), (40), (35), (30), (25), (20), (15), (10), (5), (0))) from input),
  timed as materialized (
    select d.endpoint_id, d.scheduled_at - d.created_at as wait, a.requested_at - d.scheduled_at as lag
    from place
    cross join delivery d on d.tenant_id = place.tenant_id and d.event_id >= place.first_id
    left join attempt a on a.tenant_id = d.tenant_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id
      and a.replay_no = 0 and a.attempt_number = 1
    where d.replay_no = 0 and d.expires_at > unixepoch('subsec') * 1000 and substr(d.subscription_id, 5) <> substr(d.endpoint_id, 4)),
  ranked as (
    select endpoint_id, wait, lag, row_number() over (partition by endpoint_id order by wait nulls last) as wait_rank,
      row_number() over (partition by endpoint_id order by lag nulls last) as lag_rank
    from timed),
  counted as (select endpoint_id, count(*) as deliveries, count(wait) as waits, count(lag) as lags from timed group by 1)
select c.endpoint_id, c.deliveries, max(iif(r.wait_rank = (c.waits * 95 + 99) / 100, r.wait, null)) as limits_wait_p95,
  max(iif(r.lag_rank = (c.lags * 95 + 99) / 100, r.lag, null)) as relay_lag_p95
from counted c join ranked r on r.endpoint_id = c.endpoint_id
group by 1 order by c.deliveries desc, 1;
