import type { PageRequest, Tenant } from "../../core/model.ts";
import type { Runtime } from "../runtime.ts";

/** The directory in the central database says which shard a tenant lives in; its row and all it owns are there. */
export interface TenantDeps extends Pick<Runtime, "now" | "random" | "randomBytes"> {
  /** Where new tenants may be put. */
  shards: string[];
  directory: {
    add(entry: DirectoryEntry): Promise<void>;
    find(tenantId: string): Promise<{ shard: string } | null>;
    page(request: PageRequest): Promise<DirectoryEntry[]>;
  };
  tenantStore(shard: string): {
    insert(tenant: Tenant): Promise<void>;
    find(id: string): Promise<Tenant | null>;
    findMany(ids: string[]): Promise<Tenant[]>;
    update(id: string, changes: { name: string }): Promise<Tenant | null>;
    delete(id: string, now: number): Promise<boolean>;
  };
}

interface DirectoryEntry {
  tenantId: string;
  shard: string;
  createdAt: number;
}
