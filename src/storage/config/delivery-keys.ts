import type { PublicDeliveryKeys, SourceKeys, StoredDeliveryKey } from "../../core/model.ts";
import { RELAY_SOURCE_NAME, relaySourceId } from "../../core/relay-source.ts";
import { DELIVERY_KEY_COLUMNS, toDeliveryKeys } from "../ledger/loaded-delivery.ts";

/** Delivery keys of sources that nobody configures here: whose first is made on the way, and what anybody may read. */
export function createDeliveryKeyStore(db: D1Database) {
  return {
    /**
     * Stores the key unless there is one, and reads what there is then. The row of the relay's own source is made where it is
     * not there yet, born deleted as ever. Primary key throughout.
     */
    async storeFirst(tenantId: string, sourceId: string, key: StoredDeliveryKey, now: number): Promise<SourceKeys> {
      const results = await db.batch<Record<string, any>>([
        ...(sourceId === relaySourceId(tenantId)
          ? [
              db
                .prepare(
                  `insert into source (tenant_id, id, name, allowed_event_types, created_at, deleted_at)
                   values (?1, ?2, ?3, '[]', ?4, ?4) on conflict do nothing`,
                )
                .bind(tenantId, sourceId, RELAY_SOURCE_NAME, now),
            ]
          : []),
        db
          .prepare(
            `update source set delivery_key = ?3, delivery_public_key = ?4, delivery_key_version = ?5
             where tenant_id = ?1 and id = ?2 and delivery_key is null`,
          )
          .bind(tenantId, sourceId, key.wrappedKey, key.publicKey, key.version),
        db
          .prepare(`select ${DELIVERY_KEY_COLUMNS} from source s where s.tenant_id = ? and s.id = ?`)
          .bind(tenantId, sourceId),
      ]);
      const row = results.at(-1)!.results[0];
      if (!row) throw new Error(`source ${sourceId} is not there to be given a key`);
      return toDeliveryKeys(row);
    },

    /** Of a deleted source too, whose deliveries go on; not of a deleted tenant's. Primary keys. */
    async findPublicKeys(tenantId: string, sourceId: string): Promise<PublicDeliveryKeys | null> {
      const row = await db
        .prepare(
          `select s.delivery_key_version, s.delivery_public_key, s.delivery_public_key_previous,
                  s.delivery_key_previous_valid_until
           from source s cross join tenant t on t.id = s.tenant_id
           where s.tenant_id = ? and s.id = ? and t.deleted_at is null and s.delivery_public_key is not null`,
        )
        .bind(tenantId, sourceId)
        .first<Record<string, any>>();
      if (!row) return null;
      const previous = row["delivery_public_key_previous"];
      return {
        version: row["delivery_key_version"],
        current: new Uint8Array(row["delivery_public_key"]),
        previous: previous && new Uint8Array(previous),
        previousValidUntil: row["delivery_key_previous_valid_until"],
      };
    },
  };
}
