-- Finding one delivery among millions. Neither index holds anything of a delivery that succeeds at its first attempt, so an event
-- costs the rows it did.
--
-- GET /v1/deliveries of what did not succeed, in the list's own order: by status, error class, status code, final outcome, or a
-- time of its end, of a tenant, an endpoint or a subscription. It holds all that these filters ask for, so that one call can look
-- at tens of thousands of its entries and at none of the rows. A row written when a delivery ends so, and one when it is replayed.
create index delivery_unsuccessful on delivery (
  tenant_id, status, created_at, event_id, endpoint_id, replay_no,
  subscription_id, final_outcome, last_error_class, last_status_code, terminal_at, replayed_as, expires_at
) where terminal_at is not null and status <> 'succeeded';

-- GET /v1/find: the receiver's own request id, of what they say went wrong. A row written by each attempt that did not succeed and
-- was answered with one. Those of successes are found by a walk through a time.
create index attempt_partner_request on attempt (tenant_id, partner_request_id)
  where partner_request_id is not null and outcome_class <> 'success';
