-- What the relay tells of itself (hooklane.delivery.dead_letter and others): a note of each transition, written in the batch
-- that makes it, and taken away once the event that tells of it is published. Only tenants with a subscription that asks for it
-- get notes, so for all others a dead letter costs no row more.
-- id is computed from the transition and becomes the event's idempotency key. The key is the order of publication.
create table operational_event (
  tenant_id text not null,
  raised_at integer not null,
  id text not null,
  type text not null,
  facts text not null,
  primary key (tenant_id, raised_at, id),
  foreign key (tenant_id) references tenant (id)
) without rowid;
-- Whether anybody asks for such events: read by every batch that may raise one, empty for most tenants. '/' follows '.'.
create index subscription_operational on subscription (tenant_id, event_type_pattern)
  where deleted_at is null and disabled_at is null
    and event_type_pattern >= 'hooklane.' and event_type_pattern < 'hooklane/';
-- The time of failing (failing_since) that was told of: each is, once.
alter table endpoint add column failing_told_since integer;
