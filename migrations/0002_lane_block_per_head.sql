-- Two deliveries of different keys can be heads, and in flight, at once, and stand in one lane when the endpoint becomes strict
-- meanwhile. Where a lane waits for an operator, each of them that dies asks for itself: the key of a block is its head.
create table lane_block_per_head (
  tenant_id text not null,
  endpoint_id text not null,
  lane_key text not null,
  event_id text not null,
  replay_no integer not null,
  blocked_at integer not null,
  primary key (endpoint_id, lane_key, event_id, replay_no),
  foreign key (tenant_id, event_id, endpoint_id, replay_no)
    references delivery (tenant_id, event_id, endpoint_id, replay_no)
) without rowid;
insert into lane_block_per_head select * from lane_block;
drop table lane_block;
alter table lane_block_per_head rename to lane_block;
