import type { PageRequest, Source, SourceKeys, StoredDeliveryKey } from "../../core/model.ts";
import type { Result } from "../../core/result.ts";
import type { SecretsKeys } from "../../core/secret-box.ts";
import type { Runtime } from "../runtime.ts";

export interface SourceDeps extends Pick<Runtime, "now" | "randomBytes"> {
  secretsKeys: SecretsKeys;
  /** In the central database: how a signed request finds the tenant of the source it names. */
  sourceDirectory: { add(entry: { sourceId: string; tenantId: string }): Promise<void> };
  sources: {
    insert(
      tenantId: string,
      source: Source,
      wrappedKey: Uint8Array,
      deliveryKey: StoredDeliveryKey,
    ): Promise<Result<null, "name_taken" | "quota_exceeded">>;
    find(tenantId: string, id: string): Promise<Source | null>;
    page(tenantId: string, request: PageRequest): Promise<Source[]>;
    update(
      tenantId: string,
      id: string,
      changes: { name?: string; allowedEventTypes?: string[] },
    ): Promise<Result<Source | null, "name_taken">>;
    findKeys(tenantId: string, id: string): Promise<SourceKeys | null>;
    /** Null when the source has not the version before that one, or is gone. */
    rotateKey(
      tenantId: string,
      id: string,
      key: { version: number; wrappedKey: Uint8Array; previousValidUntil: number },
    ): Promise<Source | null>;
    findDeliveryKeys(tenantId: string, id: string): Promise<SourceKeys | null>;
    /** Null when the source has not the version before that one, or is gone. */
    rotateDeliveryKey(
      tenantId: string,
      id: string,
      key: StoredDeliveryKey & { previousValidUntil: number },
    ): Promise<Source | null>;
    delete(tenantId: string, id: string, now: number): Promise<boolean>;
  };
}
