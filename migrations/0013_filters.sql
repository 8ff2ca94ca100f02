-- Filters of subscriptions. `subscription.filter`, `delivery.filter_match_ms` and `delivery.filter_match_steps` have stood ready
-- since 0001; what was missing is a place for filters that fail (docs/adr/0014-filters-are-cel-evaluated-by-us.md).
--
-- An event on which a filter said neither yes nor no keeps who was passed over and why: the first hundred as
-- `[[subscription id, reason], …]`, and how many there are. Null and 0 in nearly every row: two bytes, no row, no index, read
-- where the event's row is read anyway.
alter table event add column skipped_count integer not null default 0;
alter table event add column skipped text;

-- The subscription says that its filter fails, since an event may be one that nobody looks at: the last failure that was noted,
-- at most one an hour. Cleared when a filter is set. No index: read with their row.
alter table subscription add column filter_failed_at integer;
alter table subscription add column filter_failed_reason text;
alter table subscription add column filter_failed_event_id text;
