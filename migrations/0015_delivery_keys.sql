-- Source signatures: a source's delivery key (ed25519) signs what goes out to endpoints that ask. The private half has its columns
-- since the first migration, wrapped; here come its public half, which is answered to anybody and so must be readable without
-- unwrapping anything, and the version that binds a wrapped key to its place. 0: none yet; it gets one when it is first needed.
--
-- No index: keys are read with the source's row, by key, which every load of a delivery reads anyway.
alter table source add column delivery_key_version integer not null default 0;
alter table source add column delivery_public_key blob;
alter table source add column delivery_public_key_previous blob;
-- Whether an endpoint asks.
alter table endpoint add column source_signatures integer not null default 0 check (source_signatures in (0, 1));
