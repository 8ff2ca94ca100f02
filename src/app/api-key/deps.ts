import type { ApiKey, PageRequest } from "../../core/model.ts";
import type { Runtime } from "../runtime.ts";

export interface ApiKeyDeps extends Pick<Runtime, "now" | "randomBytes"> {
  /** The shard the caller's tenant lives in; a key's text names it, so that a request knows where to look. */
  shard: string;
  apiKeys: {
    /** `no_source` when the key's source does not exist, `full` when the tenant has all the keys it may have. */
    insert(tenantId: string, key: ApiKey, keyHash: Uint8Array): Promise<"stored" | "no_source" | "full">;
    find(tenantId: string, id: string): Promise<ApiKey | null>;
    page(tenantId: string, request: PageRequest): Promise<ApiKey[]>;
    update(tenantId: string, id: string, changes: { name?: string | null }): Promise<ApiKey | null>;
    revoke(tenantId: string, id: string, now: number): Promise<boolean>;
  };
}
