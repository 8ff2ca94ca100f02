-- A producer that signs its requests names its source and nothing else, so the source must lead to its tenant, as a key
-- leads to its shard. Only the central database's copy is read; the other shards keep it empty. Written when a source
-- gets a key; rows stay when it is deleted, since they say nothing but where it was.
create table source_directory (
  source_id text not null,
  tenant_id text not null,
  primary key (source_id)
) without rowid;

-- The version counts the keys a source has had: those made before there were keys have had none.
update source set signing_key_version = 0 where signing_key is null;
