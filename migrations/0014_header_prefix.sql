-- Whoever comes from another sender has consumers that read its headers: `svix-id`, or `X-Acme-Event-Type`. With a prefix the
-- relay's own headers go out a second time under it. One for all endpoints of a tenant, as consumers were told of one; null for
-- none.
--
-- No index: it is read with the tenant's row, by key, which every load of a delivery reads anyway.
alter table tenant add column header_prefix text;
