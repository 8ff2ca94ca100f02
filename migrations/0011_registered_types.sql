-- A tenant may ask that its producers publish registered types and versions only. The rows of event_type are versions, read with
-- all else that a publish is matched against; their type is their name, and required_scope is the same on each of them.
alter table tenant add column require_registered_types integer not null default 0 check (require_registered_types in (0, 1));
