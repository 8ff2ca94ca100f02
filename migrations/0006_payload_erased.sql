-- Erasing an event's payload (DELETE /v1/events/{id}/payload) leaves the row, its hash and its size: this says that the
-- bytes are gone, and since when. Written after they are, so it never says so of bytes that are still there. A column
-- that is null in nearly every row costs a byte, no row and no index: it is read where the event's row is read anyway.
alter table event add column payload_erased_at integer;
