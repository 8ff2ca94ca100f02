-- One event may owe thousands of deliveries, more than one commit should write. What does not commit with the event stands here
-- as it was matched when the event was accepted, `[[endpoint id, subscription id], …]` a part, until each part has become rows
-- of `delivery` in a batch of its own (docs/adr/0012-the-rest-of-a-large-fan-out-is-a-list.md). Event ids sort by time, so the
-- primary key is the watchdog's query too: the oldest parts of all tenants. Empty but for the seconds after a large fan-out.
create table fan_out (
  tenant_id text not null,
  event_id text not null,
  part integer not null check (part >= 0),
  deliveries text not null,
  primary key (event_id, part),
  foreign key (tenant_id, event_id) references event (tenant_id, id)
) without rowid;
