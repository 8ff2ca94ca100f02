import type { DeliveryFilters } from "../../core/delivery-filters.ts";
import type { Filter } from "./paging.ts";

/** Columns that delivery_unsuccessful holds. */
const INDEXED = new Set([
  "tenant_id",
  "status",
  "created_at",
  "event_id",
  "endpoint_id",
  "replay_no",
  "subscription_id",
  "final_outcome",
  "last_error_class",
  "last_status_code",
  "terminal_at",
  "replayed_as",
  "expires_at",
]);

/** Whether delivery_unsuccessful alone can say which rows pass. */
export function isIndexed(filters: Filter[]): boolean {
  return filters.every(({ columns }) => columns.every((column) => INDEXED.has(column)));
}

/** The conditions on a delivery `d`, all of them, whatever a walk has seen to already. */
export function deliveryFilters(tenantId: string, filters: DeliveryFilters, now: number): Filter[] {
  const own: [column: string, operator: string, value: string | number | undefined][] = [
    ["expires_at", "> ?", now],
    ["event_id", "= ?", filters.eventId],
    ["subscription_id", "= ?", filters.subscriptionId],
    ["endpoint_id", "= ?", filters.endpointId],
    ["status", "= ?", filters.status],
    ["replayed_as", "is null and ?", filters.isOpen ? 1 : undefined],
    ["last_error_class", "= ?", filters.errorClass],
    ["last_status_code", "= ?", filters.statusCode],
    ["final_outcome", "= ?", filters.finalOutcome],
    ["relay_region", "= ?", filters.relayRegion],
    ["created_at", "> ?", filters.createdAfter],
    ["created_at", "< ?", filters.createdBefore],
    ["terminal_at", "> ?", filters.terminalAfter],
    ["terminal_at", "< ?", filters.terminalBefore],
  ];
  const conditions: Filter[] = own.flatMap(([column, operator, value]) =>
    value === undefined ? [] : [{ sql: `d.${column} ${operator}`, values: [value], columns: [column] }],
  );
  return [
    ...conditions,
    ...eventCondition(tenantId, filters),
    ...versionCondition(filters),
    ...workerCondition(filters),
  ];
}

/** What is asked of its event, in one look at it. */
function eventCondition(tenantId: string, filters: DeliveryFilters): Filter[] {
  const asked: [sql: string, values: (string | number)[] | undefined][] = [
    ["e.type = ?", filters.eventType === undefined ? undefined : [filters.eventType]],
    [
      "e.source_id in (select s.id from source s where s.tenant_id = ? and (s.id = ? or s.name = ?))",
      filters.source === undefined ? undefined : [tenantId, filters.source, filters.source],
    ],
    ["e.occurred_at > ?", filters.occurredAfter === undefined ? undefined : [filters.occurredAfter]],
    ["e.occurred_at < ?", filters.occurredBefore === undefined ? undefined : [filters.occurredBefore]],
  ];
  const given = asked.flatMap(([sql, values]) => (values === undefined ? [] : [{ sql, values }]));
  if (given.length === 0) return [];
  const conditions = given.map(({ sql }) => sql).join(" and ");
  return [
    {
      sql: `exists (select 1 from event e where e.tenant_id = d.tenant_id and e.id = d.event_id and ${conditions})`,
      values: given.flatMap(({ values }) => values),
      columns: ["event_id"],
      seeks: 1,
    },
  ];
}

/** Of the payload that it carries: its own, else its event's. */
function versionCondition({ schemaVersion }: DeliveryFilters): Filter[] {
  if (schemaVersion === undefined) return [];
  const sql = `coalesce(d.schema_version,
    (select e.schema_version from event e where e.tenant_id = d.tenant_id and e.id = d.event_id)) = ?`;
  return [{ sql, values: [schemaVersion], columns: ["event_id", "schema_version"], seeks: 1 }];
}

function workerCondition({ workerId }: DeliveryFilters): Filter[] {
  if (workerId === undefined) return [];
  const sql = `exists (select 1 from attempt a where a.tenant_id = d.tenant_id and a.event_id = d.event_id
    and a.endpoint_id = d.endpoint_id and a.replay_no = d.replay_no and a.worker_id = ?)`;
  return [{ sql, values: [workerId], columns: ["event_id", "endpoint_id", "replay_no"], seeks: 2 }];
}
