/** As `core/choose-version` chooses, of event `e` for subscription `s`; null where there is none to send. */
export const REPLAYED_VERSION = `(select max(v.version)
  from (select e.schema_version as version union all select j.value ->> 0 from json_each(e.variants) j) v
  where v.version = coalesce(s.schema_version, v.version) and not exists (
    select 1 from event_type x where x.tenant_id = e.tenant_id and x.name = e.type and x.schema_version = v.version
      and x.retired_at is not null))`;
