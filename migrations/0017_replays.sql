-- Bulk replay: what ended badly is delivered again, as a job that survives whoever works on it
-- (docs/adr/0018-a-bulk-replay-is-a-row-and-a-walk.md). A row says what was asked for and how far it is. `found` are deliveries
-- that the walk took for meant so far; `expected` is what a bounded count found before it began, null where it did not get to the
-- end. filter, retry_policy, skipped and sample are JSON.
create table replay (
  tenant_id text not null,
  id text not null,
  state text not null default 'dry_run' check (state in ('dry_run', 'running', 'completed', 'cancelled', 'failed')),
  filter text not null,
  to_subscription_id text,
  retry_policy text,
  include_replayed integer not null default 0 check (include_replayed in (0, 1)),
  expected integer,
  expected_at_least integer not null,
  sample text not null default '[]',
  looked_at integer not null default 0,
  found integer not null default 0,
  replayed integer not null default 0,
  skipped text not null default '{}',
  error text,
  created_at integer not null,
  started_at integer,
  finished_at integer,
  primary key (tenant_id, id),
  foreign key (tenant_id) references tenant (id)
) without rowid;
-- GET /v1/replays, newest first.
create index replay_created on replay (tenant_id, created_at, id);
-- How many of a tenant's run.
create index replay_running on replay (tenant_id) where state = 'running';

-- What a running replay still has to do at one endpoint: endpoints are walked side by side, so that one which does not answer
-- holds up no other. `step` numbers the steps: one that was worked out from an older row writes nothing. `open` are the replays
-- that had not ended when it was last looked, `[[event id, replay number], …]`. A part that is done is deleted.
create table replay_part (
  tenant_id text not null,
  replay_id text not null,
  endpoint_id text not null,
  step integer not null default 0,
  after_event_id text not null default '',
  open text not null default '[]',
  waits integer not null default 0,
  faults integer not null default 0,
  next_step_at integer not null,
  primary key (tenant_id, replay_id, endpoint_id),
  foreign key (tenant_id, replay_id) references replay (tenant_id, id),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id)
) without rowid;
-- The watchdog: parts whose next step is due.
create index replay_part_due on replay_part (next_step_at);

-- What can be replayed at an endpoint, by status in the order of its events (the rest of the key follows by itself). A row is
-- written when a delivery ends otherwise than succeeded, and none when it is replayed.
create index delivery_replayable on delivery (tenant_id, endpoint_id, status)
  where terminal_at is not null and status <> 'succeeded';
