import type { PageRequest, Tenant, TenantChanges } from "../../core/model.ts";
import type { Runtime } from "../runtime.ts";
import type { ReleaseTenantDeps } from "./release-tenant.ts";

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
    /** A tenant keeps the moment of its suspension when it is suspended again. */
    update(id: string, changes: TenantChanges, now: number): Promise<Tenant | null>;
    /** A header of a living endpoint that begins with the prefix, in any case and with `_` for `-`. */
    findHeaderUnder(id: string, prefix: string): Promise<{ endpointId: string; name: string } | null>;
    delete(id: string, now: number): Promise<boolean>;
  };
  /** What is to be done to a tenant's deliveries, in the shard it lives in. */
  tenantWork(shard: string): ReleaseTenantDeps;
}

interface DirectoryEntry {
  tenantId: string;
  shard: string;
  createdAt: number;
}
