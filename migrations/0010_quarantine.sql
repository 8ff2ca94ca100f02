-- Isolation of receivers that hang.
--
-- An endpoint of which much is in flight and nothing answered is in quarantine: routed to its lane, which tries it with one
-- request at a time until it answers. The relay sets this, never a user; the column is when. Null for all that are not.
--
-- No index: it is read with its row, by key.
alter table endpoint add column quarantined_at integer;
