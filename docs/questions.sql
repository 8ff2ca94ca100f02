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
