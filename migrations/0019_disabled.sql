-- What was disabled lately, without a walk over all there is: a tenant may have ten thousand subscriptions, and as many endpoints
-- as its quota says. A row written by each disabling, and one by each deletion of what was disabled once; none by anything else.
--
-- GET /v1/reports/disabled, newest first.
create index subscription_disabled on subscription (tenant_id, last_disabled_at)
  where last_disabled_at is not null and deleted_at is null;
create index endpoint_disabled on endpoint (tenant_id, last_disabled_at)
  where last_disabled_at is not null and deleted_at is null;
