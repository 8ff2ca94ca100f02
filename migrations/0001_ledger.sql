-- The ledger: everything the relay knows. Times are integer milliseconds since 1970 UTC, hashes are blobs, ids are the
-- public ones. Rows written are the bill, so every index names the query it serves, and identities are primary keys:
-- WITHOUT ROWID stores the key once where a rowid table would write a row and an index entry for it.
-- Every reference carries the tenant, so a row that mixes two tenants is refused by the database itself.

-- Where each tenant lives. Only the central database's copy is read; the other shards keep it empty.
create table tenant_directory (
  tenant_id text not null,
  shard text not null,
  created_at integer not null,
  primary key (tenant_id)
) without rowid;
-- GET /v1/tenants, newest first.
create index tenant_directory_created on tenant_directory (created_at, tenant_id);

-- revision grows with every change of the tenant's configuration: a publish commits only under the revision it matched.
create table tenant (
  id text not null,
  name text not null,
  plan text not null default 'free' check (plan in ('free', 'pro', 'enterprise')),
  status text not null default 'active' check (status in ('active', 'suspended')),
  endpoint_quota integer,
  shard text not null,
  revision integer not null default 1,
  created_at integer not null,
  deleted_at integer,
  primary key (id)
) without rowid;

create table source (
  tenant_id text not null,
  id text not null,
  name text not null,
  allowed_event_types text not null default '["*"]',
  signing_key_version integer not null default 1,
  signing_key blob,
  signing_key_previous blob,
  previous_valid_until integer,
  delivery_key blob,
  delivery_key_previous blob,
  delivery_key_previous_valid_until integer,
  created_at integer not null,
  deleted_at integer,
  primary key (tenant_id, id),
  foreign key (tenant_id) references tenant (id)
) without rowid;
-- One living source a name, since consumers know it by its name; also the look-up of `"source": "<name>"` in a publish.
create unique index source_name on source (tenant_id, name) where deleted_at is null;

-- Only the hash of a key is kept.
create table api_key (
  tenant_id text not null,
  id text not null,
  key_hash blob not null,
  prefix text not null,
  scope text not null check (scope in ('admin', 'read', 'publish')),
  source_id text,
  name text,
  created_at integer not null,
  revoked_at integer,
  primary key (tenant_id, id),
  foreign key (tenant_id) references tenant (id),
  foreign key (tenant_id, source_id) references source (tenant_id, id),
  check ((scope = 'publish') = (source_id is not null))
) without rowid;
-- Every authenticated request: key → tenant.
create unique index api_key_hash on api_key (key_hash);

-- The id is derived from the policy, so a row never changes and a reference to it is a snapshot.
create table retry_policy (
  tenant_id text not null,
  id text not null,
  policy text not null,
  primary key (tenant_id, id),
  foreign key (tenant_id) references tenant (id)
) without rowid;

create table endpoint (
  tenant_id text not null,
  id text not null,
  url text not null,
  name text,
  revision integer not null default 1,
  ordering_mode text not null default 'unordered' check (ordering_mode in ('unordered', 'strict', 'keyed')),
  route text not null default 'queue' check (route in ('queue', 'lane')),
  lane_generation integer not null default 0,
  concurrency_cap integer check (concurrency_cap > 0),
  rate_limit_per_second real check (rate_limit_per_second > 0),
  max_head_hold_seconds integer check (max_head_hold_seconds > 0),
  retry_policy_id text not null,
  payload_format text not null default 'envelope' check (payload_format in ('envelope', 'raw', 'cloudevents')),
  headers text not null default '{}',
  timeout_ms integer not null default 15000 check (timeout_ms between 1000 and 30000),
  on_exhausted text not null default 'advance' check (on_exhausted in ('advance', 'block')),
  paused_at integer,
  resumed_at integer,
  disabled_at integer,
  last_disabled_at integer,
  disabled_reason text,
  created_at integer not null,
  deleted_at integer,
  primary key (tenant_id, id),
  foreign key (tenant_id) references tenant (id),
  foreign key (tenant_id, retry_policy_id) references retry_policy (tenant_id, id)
) without rowid;

-- Two slots an endpoint: a third live secret has no place to stand.
create table signing_secret (
  tenant_id text not null,
  endpoint_id text not null,
  slot integer not null check (slot in (0, 1)),
  id text not null,
  wrapped_key blob not null,
  active_from integer not null,
  active_until integer,
  primary key (tenant_id, endpoint_id, slot),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id)
) without rowid;

-- retry_policy is the override as given; retry_policy_id is the override merged over the endpoint's policy.
create table subscription (
  tenant_id text not null,
  id text not null,
  endpoint_id text not null,
  event_type_pattern text not null,
  filter text,
  schema_version integer check (schema_version > 0),
  entitlement_scope text,
  retry_policy text,
  retry_policy_id text,
  created_at integer not null,
  disabled_at integer,
  last_disabled_at integer,
  deleted_at integer,
  primary key (tenant_id, id),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id),
  foreign key (tenant_id, retry_policy_id) references retry_policy (tenant_id, id)
) without rowid;

create table event_type (
  tenant_id text not null,
  name text not null,
  schema_version integer not null check (schema_version > 0),
  required_scope text,
  json_schema text,
  retired_at integer,
  created_at integer not null,
  primary key (tenant_id, name, schema_version),
  foreign key (tenant_id) references tenant (id)
) without rowid;

-- Also the outbox row: dispatched_at says when all its deliveries were on record.
-- payload_ref is `<object key>#<offset>`; payload_size bytes from there are the payload as published.
create table event (
  tenant_id text not null,
  id text not null,
  source_id text not null,
  type text not null,
  schema_version integer not null default 1 check (schema_version > 0),
  ordering_key text,
  idempotency_key text,
  payload_ref text not null,
  payload_sha256 blob not null,
  payload_size integer not null,
  payload_is_json integer not null check (payload_is_json in (0, 1)),
  content_type text not null,
  content_encoding text,
  occurred_at integer not null,
  relayed_at integer not null,
  cause_event_id text,
  relay_region text,
  expires_at integer not null,
  dispatched_at integer,
  delivery_count integer not null default 0,
  primary key (tenant_id, id),
  foreign key (tenant_id, source_id) references source (tenant_id, id)
) without rowid;
-- A producer's retry meets its first event here; two at once meet in this constraint.
create unique index event_idempotency on event (source_id, idempotency_key) where idempotency_key is not null;

-- (tenant, event, endpoint, replay number) is the delivery: its id, the answer to "does it exist", the tenant's list and
-- the event's deliveries are this one key. Replays have numbers from 1; replay_of and replayed_as hold such numbers.
-- lane_key is null while queues may do the work; a held or ordered delivery has one and leaves the index of due work.
-- hold_until is when waiting ends for a delivery that is held.
create table delivery (
  tenant_id text not null,
  event_id text not null,
  endpoint_id text not null,
  replay_no integer not null default 0 check (replay_no between 0 and 32767),
  subscription_id text not null,
  lane_key text,
  lane_position integer,
  hold_until integer,
  status text not null
    check (status in ('pending', 'processing', 'succeeded', 'failed', 'dead_letter', 'expired', 'cancelled')),
  token text,
  locked_until integer,
  attempt_count integer not null default 0,
  failure_count integer not null default 0,
  relay_fault_count integer not null default 0,
  retry_policy_id text not null,
  created_at integer not null,
  scheduled_at integer,
  next_attempt_at integer,
  last_attempt_at integer,
  last_error_class text,
  last_status_code integer check (last_status_code between 100 and 599),
  terminal_at integer,
  final_outcome text,
  replay_of integer,
  replayed_as integer,
  filter_match_ms real,
  filter_match_steps integer,
  relay_region text,
  expires_at integer not null,
  primary key (tenant_id, event_id, endpoint_id, replay_no),
  foreign key (tenant_id, event_id) references event (tenant_id, id),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id),
  foreign key (tenant_id, subscription_id) references subscription (tenant_id, id),
  foreign key (tenant_id, retry_policy_id) references retry_policy (tenant_id, id),
  check ((terminal_at is null) = (status in ('pending', 'processing')))
) without rowid;
-- The watchdog: pending work that is overdue, and processing work whose lease (kept in next_attempt_at too) has ended.
create index delivery_due on delivery (status, next_attempt_at) where terminal_at is null and lane_key is null;
-- The rows of a lane in order, and what is held for an endpoint.
create index delivery_lane on delivery (endpoint_id, lane_key, lane_position)
  where terminal_at is null and lane_key is not null;
-- The watchdog: held work whose time is up. Empty unless something is held.
create index delivery_hold on delivery (hold_until) where hold_until is not null;
-- GET /v1/deliveries?subscription_id=…, newest first.
create index delivery_subscription on delivery (subscription_id, created_at desc);
-- The view dead_letter: a tenant's dead letters by time.
create index delivery_dead on delivery (tenant_id, terminal_at) where status = 'dead_letter';
-- GET /v1/deliveries goes by created_at. A first delivery is as old as its event, whose id sorts by time, so the primary
-- key lists those; only replays are younger than their event.
create index delivery_replay on delivery (tenant_id, created_at) where replay_no > 0;

-- One row a request that was made. Opened before the request, closed once; open while responded_at is null.
create table attempt (
  tenant_id text not null,
  event_id text not null,
  endpoint_id text not null,
  replay_no integer not null,
  attempt_number integer not null check (attempt_number > 0),
  requested_at integer not null,
  responded_at integer,
  latency_ms integer,
  status_code integer check (status_code between 100 and 599),
  outcome_class text check (outcome_class in ('success', 'transient', 'rejected', 'unreachable')),
  error_class text,
  response_body_sha256 blob,
  response_headers_json text,
  partner_request_id text,
  worker_id text,
  relay_region text,
  endpoint_revision integer not null,
  signing_secret_ids text not null,
  primary key (tenant_id, event_id, endpoint_id, replay_no, attempt_number),
  foreign key (tenant_id, event_id, endpoint_id, replay_no)
    references delivery (tenant_id, event_id, endpoint_id, replay_no)
) without rowid;

-- The lanes that wait for an operator.
create table lane_block (
  tenant_id text not null,
  endpoint_id text not null,
  lane_key text not null,
  event_id text not null,
  replay_no integer not null,
  blocked_at integer not null,
  primary key (endpoint_id, lane_key),
  foreign key (tenant_id, event_id, endpoint_id, replay_no)
    references delivery (tenant_id, event_id, endpoint_id, replay_no)
) without rowid;

-- For people's SQL: deliveries with their public ids, expired ones left out. A replay number is written in the digits of
-- the ids (Crockford's base 32), without leading zeros.
create view delivery_view as
select
  'dlv_' || substr(event_id, 5) || substr(endpoint_id, 4) || case
    when replay_no = 0 then ''
    when replay_no < 32 then substr('0123456789abcdefghjkmnpqrstvwxyz', replay_no + 1, 1)
    when replay_no < 1024 then substr('0123456789abcdefghjkmnpqrstvwxyz', replay_no / 32 + 1, 1)
      || substr('0123456789abcdefghjkmnpqrstvwxyz', replay_no % 32 + 1, 1)
    else substr('0123456789abcdefghjkmnpqrstvwxyz', replay_no / 1024 + 1, 1)
      || substr('0123456789abcdefghjkmnpqrstvwxyz', replay_no / 32 % 32 + 1, 1)
      || substr('0123456789abcdefghjkmnpqrstvwxyz', replay_no % 32 + 1, 1)
  end as delivery_id,
  'msg_' || substr(event_id, 5) || substr(endpoint_id, 4) as webhook_id,
  delivery.*
from delivery
where expires_at > unixepoch('subsec') * 1000;

-- The dead letters, a status and not a second table. replayed_as is the id of the newest replay.
create view dead_letter as
select
  d.tenant_id,
  d.delivery_id,
  d.final_outcome,
  d.terminal_at as dead_at,
  d.expires_at,
  (
    select r.delivery_id from delivery_view r
    where r.tenant_id = d.tenant_id and r.event_id = d.event_id and r.endpoint_id = d.endpoint_id
      and r.replay_no = d.replayed_as
  ) as replayed_as
from delivery_view d
where d.status = 'dead_letter';

-- For people's SQL: every attempt with its delivery's public id.
create view attempt_view as
select d.delivery_id, d.delivery_id || ':' || a.attempt_number as attempt_id, d.subscription_id, a.*
from attempt a
join delivery_view d using (tenant_id, event_id, endpoint_id, replay_no);
