-- One event may carry its payload in several versions, for consumers that have not all moved on. Their bytes stand behind those of
-- payload_ref in the same object, one after the other: `[[schema_version, size, sha-256 in hex], …]`, lowest version first. Null for
-- an event with one version. A delivery says which it carries, or which was asked for where it could not be had; null, as on all
-- that were made before, is its event's.
alter table event add column variants text;
alter table delivery add column schema_version integer;
