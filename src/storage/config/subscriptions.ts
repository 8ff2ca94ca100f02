import { and, desc, eq, gt, isNull, ne, sql, type SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { PageRequest, Subscription, SubscriptionChanges, SubscriptionPolicies } from "../../core/model.ts";
import { MAX_SUBSCRIPTIONS } from "../../core/quotas.ts";
import type { RetryPolicyInput } from "../../core/retry-policy.ts";
import { endpoint, eventType, subscription, tenant } from "../schema.ts";
import { insertRetryPolicies, toRetryPolicyRow } from "./retry-policies.ts";
import { afterKey, bumpTenantRevision, hasRoom, insertOwed, valuesWhere } from "./statements.ts";

const columns = {
  id: subscription.id,
  endpointId: subscription.endpointId,
  eventTypePattern: subscription.eventTypePattern,
  filter: subscription.filter,
  filterFailedAt: subscription.filterFailedAt,
  filterFailedReason: subscription.filterFailedReason,
  filterFailedEventId: subscription.filterFailedEventId,
  entitlementScope: subscription.entitlementScope,
  schemaVersion: subscription.schemaVersion,
  retryPolicy: subscription.retryPolicy,
  disabledAt: subscription.disabledAt,
  lastDisabledAt: subscription.lastDisabledAt,
  createdAt: subscription.createdAt,
};
type SubscriptionRow = { [Column in keyof typeof columns]: (typeof subscription.$inferSelect)[Column] };

export function createSubscriptionStore(d1: D1Database) {
  const db = drizzle(d1);
  const change = async (tenantId: string, id: string, set: Record<string, SQL | null>) => {
    const [rows] = await db.batch([
      db.update(subscription).set(set).where(isLiving(tenantId, id)).returning(columns),
      bumpTenantRevision(db, tenantId),
    ]);
    return rows[0] ? toSubscription(rows[0]) : null;
  };
  return {
    /**
     * `stale` when the endpoint is gone or its policy is no longer `policies.endpoint`, or the version asked for is retired,
     * `full` when the tenant has all it may have; then nothing is stored. By `subscription_living`.
     */
    async insert(
      tenantId: string,
      row: Subscription,
      policies: SubscriptionPolicies,
    ): Promise<"stored" | "stale" | "full"> {
      const seen = await toRetryPolicyRow(policies.endpoint);
      const effective = policies.effective && (await toRetryPolicyRow(policies.effective));
      const values = { ...row, tenantId, retryPolicy: toText(row.retryPolicy), retryPolicyId: effective?.id ?? null };
      const isLivingOfTenant = and(eq(subscription.tenantId, tenantId), isNull(subscription.deletedAt));
      const room = hasRoom(subscription, isLivingOfTenant, MAX_SUBSCRIPTIONS);
      const isFresh = sql`${endpointHasPolicy(tenantId, row.endpointId, seen.id)} and ${pinIsNotRetired(tenantId, row)}
        and ${room}`;
      const isStored = sql`exists (select 1 from ${subscription} where ${isLiving(tenantId, row.id)})`;
      const [, inserted, [rooms]] = await db.batch([
        insertRetryPolicies(db, tenantId, effective ? [effective] : [], isFresh),
        db
          .insert(subscription)
          .select(valuesWhere(subscription, values, isFresh))
          .returning({ id: subscription.id }),
        db
          .select({ hasRoom: sql<number>`${room}` })
          .from(tenant)
          .where(eq(tenant.id, tenantId)),
        bumpTenantRevision(db, tenantId, isStored),
      ]);
      if (inserted.length > 0) return "stored";
      return rooms?.hasRoom === 0 ? "full" : "stale";
    },

    async find(tenantId: string, id: string): Promise<Subscription | null> {
      const rows = await db.select(columns).from(subscription).where(isLiving(tenantId, id));
      return rows[0] ? toSubscription(rows[0]) : null;
    },

    /** By `subscription_living`: the filters look at no more rows than the tenant has subscriptions. */
    async page(
      tenantId: string,
      {
        limit,
        after,
        endpointId,
        disabledAfter,
      }: PageRequest & { endpointId: string | null; disabledAfter: number | null },
    ): Promise<Subscription[]> {
      const rows = await db
        .select(columns)
        .from(subscription)
        .where(
          and(
            eq(subscription.tenantId, tenantId),
            endpointId === null ? undefined : eq(subscription.endpointId, endpointId),
            disabledAfter === null ? undefined : gt(subscription.lastDisabledAt, disabledAfter),
            isNull(subscription.deletedAt),
            afterKey(subscription.createdAt, subscription.id, after),
          ),
        )
        .orderBy(desc(subscription.createdAt), desc(subscription.id))
        .limit(limit);
      return rows.map(toSubscription);
    },

    /**
     * Stores `to` over `from`. False, and nothing changed, when the subscription is no longer as `from` says, or its
     * endpoint's policy no longer `policies.endpoint`, or a version newly asked for is retired.
     */
    async update(
      tenantId: string,
      from: Subscription,
      to: SubscriptionChanges,
      policies: SubscriptionPolicies,
      isFilterSet = false,
    ): Promise<boolean> {
      const seen = await toRetryPolicyRow(policies.endpoint);
      const effective = policies.effective && (await toRetryPolicyRow(policies.effective));
      // One that has asked for it since before it was retired may change in all else.
      const isAnew = to.eventTypePattern !== from.eventTypePattern || to.schemaVersion !== from.schemaVersion;
      const [, , updated] = await db.batch([
        insertOwed(db, tenantId, from.endpointId),
        insertRetryPolicies(db, tenantId, effective ? [effective] : []),
        db
          .update(subscription)
          .set({
            eventTypePattern: to.eventTypePattern,
            filter: to.filter,
            ...(isFilterSet && NO_FAILURE),
            entitlementScope: to.entitlementScope,
            schemaVersion: to.schemaVersion,
            retryPolicy: toText(to.retryPolicy),
            retryPolicyId: effective?.id ?? null,
          })
          .where(
            and(
              isLiving(tenantId, from.id),
              eq(subscription.eventTypePattern, from.eventTypePattern),
              sql`${subscription.filter} is ${from.filter}`,
              sql`${subscription.entitlementScope} is ${from.entitlementScope}`,
              sql`${subscription.schemaVersion} is ${from.schemaVersion}`,
              isAnew ? pinIsNotRetired(tenantId, to) : undefined,
              sql`${subscription.retryPolicy} is ${toText(from.retryPolicy)}`,
              sql`${subscription.disabledAt} is ${from.disabledAt}`,
              endpointHasPolicy(tenantId, from.endpointId, seen.id),
            ),
          )
          .returning({ id: subscription.id }),
        bumpTenantRevision(db, tenantId),
      ]);
      return updated.length > 0;
    },

    /** By `subscription_living`. */
    async countFilterCharacters(tenantId: string, exceptId: string): Promise<number> {
      const [row] = await db
        .select({ characters: sql<number>`coalesce(sum(length(${subscription.filter})), 0)` })
        .from(subscription)
        .where(and(eq(subscription.tenantId, tenantId), isNull(subscription.deletedAt), ne(subscription.id, exceptId)));
      return row!.characters;
    },

    /** Disables one that is not; null when there is none. */
    async disable(tenantId: string, id: string, now: number): Promise<Subscription | null> {
      return change(tenantId, id, {
        disabledAt: sql`coalesce(${subscription.disabledAt}, ${now})`,
        lastDisabledAt: sql`iif(${subscription.disabledAt} is null, ${now}, ${subscription.lastDisabledAt})`,
      });
    },

    /** Null when there is no such subscription. */
    async enable(tenantId: string, id: string): Promise<Subscription | null> {
      return change(tenantId, id, { disabledAt: null });
    },

    /** False when there is no such subscription. */
    async delete(tenantId: string, id: string, now: number): Promise<boolean> {
      const [deleted] = await db.batch([
        db
          .update(subscription)
          .set({ deletedAt: now })
          .where(isLiving(tenantId, id))
          .returning({ id: subscription.id }),
        bumpTenantRevision(db, tenantId),
      ]);
      return deleted.length > 0;
    },
  };
}

function isLiving(tenantId: string, id: string): SQL | undefined {
  return and(eq(subscription.tenantId, tenantId), eq(subscription.id, id), isNull(subscription.deletedAt));
}

function endpointHasPolicy(tenantId: string, endpointId: string, policyId: string): SQL {
  return sql`exists (select 1 from ${endpoint} where ${endpoint.tenantId} = ${tenantId} and ${endpoint.id} = ${endpointId}
    and ${endpoint.retryPolicyId} = ${policyId} and ${endpoint.deletedAt} is null)`;
}

/** Of a subscription to one type: that name is no wildcard's. */
function pinIsNotRetired(
  tenantId: string,
  { eventTypePattern, schemaVersion }: Pick<Subscription, "eventTypePattern" | "schemaVersion">,
): SQL {
  return sql`not exists (select 1 from ${eventType} where ${eventType.tenantId} = ${tenantId}
    and ${eventType.name} = ${eventTypePattern} and ${eventType.schemaVersion} = ${schemaVersion}
    and ${eventType.retiredAt} is not null)`;
}

function toText(override: RetryPolicyInput | null): string | null {
  return override && JSON.stringify(override);
}

const NO_FAILURE = { filterFailedAt: null, filterFailedReason: null, filterFailedEventId: null };

function toSubscription({
  filterFailedAt,
  filterFailedReason,
  filterFailedEventId,
  retryPolicy,
  ...row
}: SubscriptionRow): Subscription {
  return {
    ...row,
    filterFailure:
      filterFailedAt === null
        ? null
        : { at: filterFailedAt, reason: filterFailedReason!, eventId: filterFailedEventId! },
    retryPolicy: retryPolicy === null ? null : (JSON.parse(retryPolicy) as RetryPolicyInput),
  };
}
