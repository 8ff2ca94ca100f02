-- Suspended tenants, and lists and quotas that do not read what was deleted.
-- status says whether a tenant is suspended; suspended_at since when, resumed_at until when it last was: the age of a
-- delivery does not run meanwhile (docs/adr/0008-a-suspension-is-one-row.md).
alter table tenant add column suspended_at integer;
alter table tenant add column resumed_at integer;

-- GET /v1/endpoints, newest first, with its filter disabled_after; and how many there are, which the quota asks.
create index endpoint_living on endpoint (tenant_id, created_at, id) where deleted_at is null;
-- GET /v1/subscriptions, newest first, with its filters; how many there are; and what a publish is matched against.
create index subscription_living on subscription (tenant_id, created_at, id) where deleted_at is null;
