import { and, asc, eq, isNull, sql, type SQL } from "drizzle-orm";
import { drizzle, type DrizzleD1Database } from "drizzle-orm/d1";
import { compilePattern } from "../../core/event-type.ts";
import type {
  EventType,
  EventTypeChanges,
  NewEventTypeVersion,
  PageRequest,
  PinnedSubscription,
} from "../../core/model.ts";
import { MAX_EVENT_TYPE_VERSIONS, MAX_JSON_SCHEMA_CHARACTERS } from "../../core/quotas.ts";
import { eventType, subscription, tenant } from "../schema.ts";
import { bumpTenantRevision, hasRoom, orKeep, valuesWhere } from "./statements.ts";

type Row = typeof eventType.$inferSelect;

/** A row is a version; those of one name are a type. All by the primary key: there are no more than MAX_EVENT_TYPE_VERSIONS. */
export function createEventTypeStore(d1: D1Database) {
  const db = drizzle(d1);
  return {
    /** A scope that is given is written to the type's other versions too; one that is not is taken from them. */
    async insert(
      tenantId: string,
      { requiredScope, ...version }: NewEventTypeVersion,
    ): Promise<"stored" | "taken" | "full"> {
      const ofType = and(eq(eventType.tenantId, tenantId), eq(eventType.name, version.name));
      const isThere = sql`exists (select 1 from ${eventType} where ${ofType}
        and ${eventType.schemaVersion} = ${version.schemaVersion})`;
      const room = and(
        hasRoom(eventType, eq(eventType.tenantId, tenantId), MAX_EVENT_TYPE_VERSIONS),
        hasSchemaRoom(tenantId, sql`true`, version.jsonSchema),
      )!;
      const present = sql`(select ${eventType.requiredScope} from ${eventType} where ${ofType} limit 1)`;
      const values = { ...version, tenantId, requiredScope: requiredScope === undefined ? present : requiredScope };
      const isNew = sql`not ${isThere} and ${room}`;
      const [[before], inserted] = await db.batch([
        db
          .select({ isTaken: sql<number>`${isThere}` })
          .from(tenant)
          .where(eq(tenant.id, tenantId)),
        db
          .insert(eventType)
          .select(valuesWhere(eventType, values as typeof eventType.$inferInsert, isNew))
          .returning({ name: eventType.name }),
        ...(requiredScope === undefined ? [] : [setScope(db, ofType, requiredScope, sql`changes() > 0`)]),
        bumpTenantRevision(db, tenantId, sql`changes() > 0`),
      ] as const);
      if (inserted.length > 0) return "stored";
      return before?.isTaken === 1 ? "taken" : "full";
    },

    async find(tenantId: string, name: string): Promise<EventType | null> {
      return toEventType(await selectType(db, tenantId, name));
    },

    /** A type is as old as the first version that it still has. */
    async page(tenantId: string, { limit, after }: PageRequest): Promise<EventType[]> {
      const createdAt = sql<number>`min(${eventType.createdAt})`.as("type_created_at");
      const types = db
        .select({ typeName: sql<string>`${eventType.name}`.as("type_name"), createdAt })
        .from(eventType)
        .where(eq(eventType.tenantId, tenantId))
        .groupBy(eventType.name)
        .having(after ? sql`(type_created_at, type_name) < (${after.createdAt}, ${after.id})` : sql`true`)
        .orderBy(sql`type_created_at desc, type_name desc`)
        .limit(limit)
        .as("types");
      const rows = await db
        .select()
        .from(types)
        .innerJoin(eventType, and(eq(eventType.tenantId, tenantId), eq(eventType.name, types.typeName)))
        .orderBy(sql`type_created_at desc, type_name desc`, asc(eventType.schemaVersion));
      const byName = Map.groupBy(
        rows.map(({ event_type: row }) => row),
        ({ name }) => name,
      );
      return [...byName.values()].map((versions) => toEventType(versions)!);
    },

    /** Subscriptions by `subscription_living`. */
    async findWithPinned(
      tenantId: string,
      name: string,
      schemaVersion: number,
    ): Promise<{ tenantRevision: number; eventType: EventType; pinned: PinnedSubscription[] } | null> {
      const [[of], rows, subscriptions] = await db.batch([
        db.select({ revision: tenant.revision }).from(tenant).where(eq(tenant.id, tenantId)),
        selectType(db, tenantId, name),
        db
          .select({
            id: subscription.id,
            endpointId: subscription.endpointId,
            eventTypePattern: subscription.eventTypePattern,
          })
          .from(subscription)
          .where(
            and(
              eq(subscription.tenantId, tenantId),
              isNull(subscription.deletedAt),
              eq(subscription.schemaVersion, schemaVersion),
            ),
          )
          .orderBy(subscription.createdAt, subscription.id),
      ]);
      const found = toEventType(rows);
      if (!of || !found) return null;
      const pinned = subscriptions.filter(({ eventTypePattern }) => compilePattern(eventTypePattern)(name));
      return { tenantRevision: of.revision, eventType: found, pinned };
    },

    /** A version keeps the moment since when it is retired. */
    async update(
      tenantId: string,
      name: string,
      { requiredScope, version }: EventTypeChanges,
      tenantRevision: number,
      now: number,
    ): Promise<"stored" | "stale" | "full"> {
      const ofType = and(eq(eventType.tenantId, tenantId), eq(eventType.name, name))!;
      const isFresh = sql`exists (select 1 from ${tenant} where ${tenant.id} = ${tenantId}
        and ${tenant.revision} = ${tenantRevision})`;
      const isThis = eq(eventType.schemaVersion, version?.schemaVersion ?? 0);
      const room = hasSchemaRoom(tenantId, sql`not (${ofType} and ${isThis})`, version?.jsonSchema ?? null);
      const [[rooms], , updated, bumped] = await db.batch([
        db
          .select({ hasRoom: sql<number>`${room}` })
          .from(tenant)
          .where(eq(tenant.id, tenantId)),
        setScope(db, ofType, requiredScope, and(isFresh, room)!),
        db
          .update(eventType)
          .set({
            jsonSchema: orKeep(version?.jsonSchema, eventType.jsonSchema),
            retiredAt: retiredAt(version?.isRetired, now),
          })
          .where(and(ofType, isThis, isFresh, room))
          .returning({ name: eventType.name }),
        db
          .update(tenant)
          .set({ revision: sql`${tenant.revision} + 1` })
          .where(and(eq(tenant.id, tenantId), eq(tenant.revision, tenantRevision), room))
          .returning({ id: tenant.id }),
      ]);
      if (bumped.length > 0 && (version === undefined || updated.length > 0)) return "stored";
      return rooms?.hasRoom === 0 ? "full" : "stale";
    },

    /** False when there is no such type. */
    async delete(tenantId: string, name: string): Promise<boolean> {
      const [deleted] = await db.batch([
        db
          .delete(eventType)
          .where(and(eq(eventType.tenantId, tenantId), eq(eventType.name, name)))
          .returning({ name: eventType.name }),
        bumpTenantRevision(db, tenantId),
      ]);
      return deleted.length > 0;
    },
  };
}

function selectType(db: DrizzleD1Database, tenantId: string, name: string) {
  return db
    .select()
    .from(eventType)
    .where(and(eq(eventType.tenantId, tenantId), eq(eventType.name, name)))
    .orderBy(asc(eventType.schemaVersion));
}

function setScope(db: DrizzleD1Database, ofType: SQL | undefined, scope: string | null | undefined, condition: SQL) {
  return db
    .update(eventType)
    .set({ requiredScope: orKeep(scope, eventType.requiredScope) })
    .where(and(ofType, condition));
}

function retiredAt(isRetired: boolean | undefined, now: number): SQL | null {
  if (isRetired === undefined) return sql`${eventType.retiredAt}`;
  return isRetired ? sql`coalesce(${eventType.retiredAt}, ${now})` : null;
}

/** Whether a schema fits beside those of the rows that `others` holds for: isolates keep all of a tenant's. */
function hasSchemaRoom(tenantId: string, others: SQL, schema: string | null): SQL {
  if (schema === null) return sql`true`;
  return sql`(select coalesce(sum(length(${eventType.jsonSchema})), 0) from ${eventType}
    where ${eventType.tenantId} = ${tenantId} and ${others}) + ${schema.length} <= ${MAX_JSON_SCHEMA_CHARACTERS}`;
}

function toEventType(rows: Row[]): EventType | null {
  const [first] = rows;
  if (!first) return null;
  return {
    name: first.name,
    requiredScope: first.requiredScope,
    createdAt: Math.min(...rows.map(({ createdAt }) => createdAt)),
    versions: rows.map(({ schemaVersion, jsonSchema, retiredAt, createdAt }) => ({
      schemaVersion,
      jsonSchema: jsonSchema === null ? null : (JSON.parse(jsonSchema) as Record<string, unknown>),
      retiredAt,
      createdAt,
    })),
  };
}
