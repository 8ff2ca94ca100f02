import { and, desc, eq, gt, isNotNull, isNull, sql, type SQL } from "drizzle-orm";
import { drizzle, type DrizzleD1Database } from "drizzle-orm/d1";
import type {
  Endpoint,
  EndpointChanges,
  EndpointWithOverrides,
  PageRequest,
  PolicyChange,
  SigningSecret,
} from "../../core/model.ts";
import { formatStoredHeaders, parseStoredHeaders } from "../../core/endpoint-headers.ts";
import type { EndpointQuotas } from "../../core/quotas.ts";
import type { RetryPolicy, RetryPolicyInput } from "../../core/retry-policy.ts";
import { endpoint, retryPolicy, signingSecret, subscription, tenant } from "../schema.ts";
import { insertRetryPolicies, toRetryPolicyRow } from "./retry-policies.ts";
import { afterKey, bumpTenantRevision, hasRoom, insertOwed, orKeep, valuesWhere } from "./statements.ts";

// In a batch, columns of one name would fall together: the policy is the only one from the joined table.
const columns = {
  id: endpoint.id,
  url: endpoint.url,
  name: endpoint.name,
  revision: endpoint.revision,
  orderingMode: endpoint.orderingMode,
  concurrencyCap: endpoint.concurrencyCap,
  rateLimitPerSecond: endpoint.rateLimitPerSecond,
  maxHeadHoldSeconds: endpoint.maxHeadHoldSeconds,
  onExhausted: endpoint.onExhausted,
  route: endpoint.route,
  laneGeneration: endpoint.laneGeneration,
  payloadFormat: endpoint.payloadFormat,
  sourceSignatures: endpoint.sourceSignatures,
  headers: endpoint.headers,
  timeoutMs: endpoint.timeoutMs,
  pausedAt: endpoint.pausedAt,
  disabledAt: endpoint.disabledAt,
  lastDisabledAt: endpoint.lastDisabledAt,
  disabledReason: endpoint.disabledReason,
  failingSince: endpoint.failingSince,
  disableAfterFailingSeconds: endpoint.disableAfterFailingSeconds,
  quarantinedAt: endpoint.quarantinedAt,
  createdAt: endpoint.createdAt,
  policy: retryPolicy.policy,
};
type EndpointRow = Pick<typeof endpoint.$inferSelect, Exclude<keyof typeof columns, "policy">> & { policy: string };

export function createEndpointStore(d1: D1Database) {
  const db = drizzle(d1);
  return {
    /** False, and nothing stored, when the tenant's quota is full, which the insert itself proves. By `endpoint_living`. */
    async insert(tenantId: string, row: Endpoint, secret: SigningSecret, quotas: EndpointQuotas): Promise<boolean> {
      const { retryPolicy: policy, headers, ...fields } = row;
      const policyRow = await toRetryPolicyRow(policy);
      const quota = sql`(select coalesce(${tenant.endpointQuota}, case ${tenant.plan} when 'enterprise' then ${quotas.enterprise}
        when 'pro' then ${quotas.pro} else ${quotas.free} end) from ${tenant} where ${tenant.id} = ${tenantId})`;
      const isLivingOfTenant = and(eq(endpoint.tenantId, tenantId), isNull(endpoint.deletedAt));
      const room = hasRoom(endpoint, isLivingOfTenant, quota);
      const isStored = sql`exists (select 1 from ${endpoint} where ${isLiving(tenantId, row.id)})`;
      const values = { ...fields, headers: formatStoredHeaders(headers), tenantId, retryPolicyId: policyRow.id };
      const secretValues = { ...secret, tenantId, endpointId: row.id, wrappedKey: secret.wrappedKey };
      const [, stored] = await db.batch([
        insertRetryPolicies(db, tenantId, [policyRow], room),
        db
          .insert(endpoint)
          .select(valuesWhere(endpoint, values, room))
          .returning({ id: endpoint.id }),
        db.insert(signingSecret).select(valuesWhere(signingSecret, secretValues, isStored)),
        bumpTenantRevision(db, tenantId, isStored),
      ]);
      return stored.length > 0;
    },

    async find(tenantId: string, id: string): Promise<Endpoint | null> {
      const rows = await selectLiving(db, tenantId, eq(endpoint.id, id));
      return rows[0] ? toEndpoint(rows[0]) : null;
    },

    async findHeaderPrefix(tenantId: string): Promise<string | null> {
      const rows = await db.select({ prefix: tenant.headerPrefix }).from(tenant).where(eq(tenant.id, tenantId));
      return rows[0]?.prefix ?? null;
    },

    /** By `endpoint_living`: the filter looks at no more rows than the tenant has endpoints. */
    async page(
      tenantId: string,
      { limit, after, disabledAfter }: PageRequest & { disabledAfter: number | null },
    ): Promise<Endpoint[]> {
      const wanted = and(
        afterKey(endpoint.createdAt, endpoint.id, after),
        disabledAfter === null ? undefined : gt(endpoint.lastDisabledAt, disabledAfter),
      );
      const rows = await selectLiving(db, tenantId, wanted)
        .orderBy(desc(endpoint.createdAt), desc(endpoint.id))
        .limit(limit);
      return rows.map(toEndpoint);
    },

    /** Null when there is no such endpoint, or it is not as `revision` says. */
    async update(tenantId: string, id: string, changes: EndpointChanges, revision?: number): Promise<Endpoint | null> {
      const isFresh = revision === undefined ? undefined : eq(endpoint.revision, revision);
      const [updated, , rows] = await db.batch([
        db
          .update(endpoint)
          .set(changedColumns(changes))
          .where(and(isLiving(tenantId, id), isFresh))
          .returning({ id: endpoint.id }),
        bumpTenantRevision(db, tenantId),
        selectLiving(db, tenantId, eq(endpoint.id, id)),
      ]);
      return updated.length > 0 && rows[0] ? toEndpoint(rows[0]) : null;
    },

    /** As of one moment, so that a change computed from it can be refused when anything has moved since. */
    async findWithOverrides(tenantId: string, id: string): Promise<EndpointWithOverrides | null> {
      const [tenants, endpoints, overrides] = await db.batch([
        db.select({ revision: tenant.revision }).from(tenant).where(eq(tenant.id, tenantId)),
        selectLiving(db, tenantId, eq(endpoint.id, id)),
        db
          .select({ subscriptionId: subscription.id, retryPolicy: subscription.retryPolicy })
          .from(subscription)
          .where(
            and(
              eq(subscription.tenantId, tenantId),
              eq(subscription.endpointId, id),
              isNotNull(subscription.retryPolicy),
              isNull(subscription.deletedAt),
            ),
          ),
      ]);
      if (!tenants[0] || !endpoints[0]) return null;
      return {
        tenantRevision: tenants[0].revision,
        endpoint: toEndpoint(endpoints[0]),
        overrides: overrides.map((row) => ({
          subscriptionId: row.subscriptionId,
          retryPolicy: JSON.parse(row.retryPolicy ?? "{}") as RetryPolicyInput,
        })),
      };
    },

    /** Null, and nothing changed, when the tenant's configuration has moved on from `change.tenantRevision`. */
    async updateWithPolicy(
      tenantId: string,
      id: string,
      changes: EndpointChanges,
      change: PolicyChange,
    ): Promise<Endpoint | null> {
      const own = await toRetryPolicyRow(change.retryPolicy);
      const effective = await Promise.all(
        change.effective.map(async (it) => [it.subscriptionId, await toRetryPolicyRow(it.retryPolicy)] as const),
      );
      const idsBySubscription = JSON.stringify(Object.fromEntries(effective.map(([key, row]) => [key, row.id])));
      const isFresh = sql`exists (select 1 from ${tenant} where ${tenant.id} = ${tenantId}
        and ${tenant.revision} = ${change.tenantRevision})`;
      const [, , updated, , , rows] = await db.batch([
        insertOwed(db, tenantId, id),
        insertRetryPolicies(db, tenantId, [own, ...effective.map(([, row]) => row)]),
        db
          .update(endpoint)
          .set({ ...changedColumns(changes), retryPolicyId: own.id })
          .where(and(isLiving(tenantId, id), isFresh))
          .returning({ id: endpoint.id }),
        db
          .update(subscription)
          .set({
            retryPolicyId: sql`(select value from json_each(${idsBySubscription}) where key = ${subscription.id})`,
          })
          .where(
            and(
              eq(subscription.tenantId, tenantId),
              sql`${subscription.id} in (select key from json_each(${idsBySubscription}))`,
              isFresh,
            ),
          ),
        // Last: the statements before it compare with the revision it changes.
        bumpTenantRevision(db, tenantId),
        selectLiving(db, tenantId, eq(endpoint.id, id)),
      ]);
      return updated.length > 0 && rows[0] ? toEndpoint(rows[0]) : null;
    },

    /** Its subscriptions go with it; its deliveries are for the caller to end. False when there is no such endpoint. */
    async delete(tenantId: string, id: string, now: number): Promise<boolean> {
      const [deleted] = await db.batch([
        db
          .update(endpoint)
          .set({ deletedAt: now, revision: sql`${endpoint.revision} + 1` })
          .where(isLiving(tenantId, id))
          .returning({ id: endpoint.id }),
        db
          .update(subscription)
          .set({ deletedAt: now })
          .where(
            and(eq(subscription.tenantId, tenantId), eq(subscription.endpointId, id), isNull(subscription.deletedAt)),
          ),
        bumpTenantRevision(db, tenantId),
      ]);
      return deleted.length > 0;
    },
  };
}

function isLiving(tenantId: string, id: string): SQL | undefined {
  return and(eq(endpoint.tenantId, tenantId), eq(endpoint.id, id), isNull(endpoint.deletedAt));
}

function selectLiving(db: DrizzleD1Database, tenantId: string, condition: SQL | undefined) {
  return db
    .select(columns)
    .from(endpoint)
    .innerJoin(
      retryPolicy,
      and(eq(retryPolicy.tenantId, endpoint.tenantId), eq(retryPolicy.id, endpoint.retryPolicyId)),
    )
    .where(and(eq(endpoint.tenantId, tenantId), isNull(endpoint.deletedAt), condition));
}

function changedColumns(changes: EndpointChanges) {
  return {
    url: orKeep(changes.url, endpoint.url),
    name: orKeep(changes.name, endpoint.name),
    headers: orKeep(changes.headers && formatStoredHeaders(changes.headers), endpoint.headers),
    payloadFormat: orKeep(changes.payloadFormat, endpoint.payloadFormat),
    sourceSignatures: orKeep(changes.sourceSignatures, endpoint.sourceSignatures),
    disableAfterFailingSeconds: orKeep(changes.disableAfterFailingSeconds, endpoint.disableAfterFailingSeconds),
    // What another URL did says nothing of this one.
    failingSince: sql`iif(${endpoint.url} = ${changes.url ?? endpoint.url}, ${endpoint.failingSince}, null)`,
    failureNotedAt: sql`iif(${endpoint.url} = ${changes.url ?? endpoint.url}, ${endpoint.failureNotedAt}, null)`,
    revision: sql`${endpoint.revision} + 1`,
  };
}

function toEndpoint({ policy, ...row }: EndpointRow): Endpoint {
  return {
    ...row,
    orderingMode: row.orderingMode as Endpoint["orderingMode"],
    onExhausted: row.onExhausted as Endpoint["onExhausted"],
    route: row.route as Endpoint["route"],
    payloadFormat: row.payloadFormat as Endpoint["payloadFormat"],
    headers: parseStoredHeaders(row.headers),
    retryPolicy: JSON.parse(policy) as RetryPolicy,
  };
}
