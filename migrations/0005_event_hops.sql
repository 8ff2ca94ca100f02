-- How many relays an event had come through when it was published here. Each request hands the count on, one higher, and a
-- publish that brings too high a one is refused: so a ring of relays ends. In the row, it costs no write of its own.
alter table event add column hop_count integer not null default 0 check (hop_count >= 0);
