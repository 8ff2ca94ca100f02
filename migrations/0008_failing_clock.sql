-- Since when an endpoint has had nothing but failures, which disables it in the end, and what its health is read from.
-- failing_since is written by the failure that begins such a time and by the success that ends it, in the batch that closes the
-- attempt: no row more while all goes well. failure_noted_at is moved at most twice a day, so that a long silence between two
-- failures is no time of failing. Null seconds: never disabled for it.
alter table endpoint add column failing_since integer;
alter table endpoint add column failure_noted_at integer;
alter table endpoint add column disable_after_failing_seconds integer default 432000
  check (disable_after_failing_seconds >= 3600);

-- GET /v1/endpoints/{id}/health: the subscriptions of one endpoint, whose deliveries delivery_subscription has in order.
create index subscription_endpoint on subscription (endpoint_id, deleted_at, created_at);
