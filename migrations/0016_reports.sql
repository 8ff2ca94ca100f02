-- What went wrong lately, and what is dead, without a walk over what went well. Neither index holds anything of a delivery that
-- succeeds at its first attempt, so an event costs the rows it did.
--
-- GET /v1/reports/failures: attempts of a window that did not succeed. A row written by each such attempt's close.
create index attempt_failed on attempt (tenant_id, requested_at, error_class) where outcome_class <> 'success';
-- GET /v1/reports/failures and dead-letters, and lists of what ended otherwise than succeeded, by status and time. It holds all
-- that counts by subscription and reason read, so 100,000 dead letters are counted without a look at one of them. A row written
-- when a delivery ends so, and one when it is replayed. In the place of delivery_dead, which had the dead letters alone.
drop index delivery_dead;
create index delivery_ended on delivery (
  tenant_id, status, terminal_at, subscription_id, final_outcome, replayed_as, expires_at
) where terminal_at is not null and status <> 'succeeded';

-- The same view; it says what the index asks to hear.
drop view dead_letter;
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
where d.status = 'dead_letter' and d.status <> 'succeeded' and d.terminal_at is not null;
