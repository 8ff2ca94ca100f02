import { and, eq, isNull, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { SigningSecret } from "../../core/model.ts";
import { endpoint, signingSecret } from "../schema.ts";
import { bumpTenantRevision, valuesWhere } from "./statements.ts";

export function createSigningSecretStore(d1: D1Database) {
  const db = drizzle(d1);
  return {
    /** Every secret that is on record, live or ended, with the endpoint's revision; null when there is no such endpoint. */
    async find(
      tenantId: string,
      endpointId: string,
    ): Promise<{ endpointRevision: number; secrets: SigningSecret[] } | null> {
      const [endpoints, secrets] = await db.batch([
        db
          .select({ revision: endpoint.revision })
          .from(endpoint)
          .where(and(eq(endpoint.tenantId, tenantId), eq(endpoint.id, endpointId), isNull(endpoint.deletedAt))),
        db
          .select()
          .from(signingSecret)
          .where(and(eq(signingSecret.tenantId, tenantId), eq(signingSecret.endpointId, endpointId))),
      ]);
      return endpoints[0] ? { endpointRevision: endpoints[0].revision, secrets: secrets.map(toSigningSecret) } : null;
    },

    /**
     * Puts a new secret into its slot, over whatever stood there, and gives the current one its end. False, and nothing
     * changed, when the endpoint has moved on from `endpointRevision` or is deleted.
     */
    async rotate(
      tenantId: string,
      endpointId: string,
      endpointRevision: number,
      secret: SigningSecret,
      current: { id: string; activeUntil: number } | null,
    ): Promise<boolean> {
      const isFresh = sql`exists (select 1 from ${endpoint} where ${endpoint.tenantId} = ${tenantId}
        and ${endpoint.id} = ${endpointId} and ${endpoint.revision} = ${endpointRevision}
        and ${endpoint.deletedAt} is null)`;
      const row = { ...secret, tenantId, endpointId, wrappedKey: secret.wrappedKey };
      const [, , rotated] = await db.batch([
        db
          .insert(signingSecret)
          .select(valuesWhere(signingSecret, row, isFresh))
          .onConflictDoUpdate({
            target: [signingSecret.tenantId, signingSecret.endpointId, signingSecret.slot],
            set: {
              id: sql`excluded.id`,
              wrappedKey: sql`excluded.wrapped_key`,
              activeFrom: sql`excluded.active_from`,
              activeUntil: sql`excluded.active_until`,
            },
          }),
        db
          .update(signingSecret)
          .set({ activeUntil: current?.activeUntil ?? null })
          .where(
            and(
              eq(signingSecret.tenantId, tenantId),
              eq(signingSecret.endpointId, endpointId),
              eq(signingSecret.id, current?.id ?? ""),
              isFresh,
            ),
          ),
        // Last: the statements before it compare with the revision it changes.
        db
          .update(endpoint)
          .set({ revision: sql`${endpoint.revision} + 1` })
          .where(
            and(
              eq(endpoint.tenantId, tenantId),
              eq(endpoint.id, endpointId),
              eq(endpoint.revision, endpointRevision),
              isNull(endpoint.deletedAt),
            ),
          )
          .returning({ id: endpoint.id }),
        bumpTenantRevision(db, tenantId),
      ]);
      return rotated.length > 0;
    },
  };
}

function toSigningSecret(row: typeof signingSecret.$inferSelect): SigningSecret {
  return {
    id: row.id,
    slot: row.slot as SigningSecret["slot"],
    wrappedKey: new Uint8Array(row.wrappedKey),
    activeFrom: row.activeFrom,
    activeUntil: row.activeUntil,
  };
}
