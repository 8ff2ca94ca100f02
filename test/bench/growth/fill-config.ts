import { randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { createId } from "../../../src/core/ids.ts";

export interface FilledTenant {
  id: string;
  sourceId: string;
  retryPolicyId: string;
  /** Of the endpoints made here, with the subscription of each. */
  endpoints: { id: string; subscriptionId: string; isStrict: boolean }[];
}

const CONFIG_TABLES = ["source", "retry_policy"];

/** A tenant as it is, or a new one with the configuration of that one but for its endpoints and keys. */
export function copyTenant(db: DatabaseSync, tenantId: string, newTenantId = tenantId): FilledTenant {
  const source = db.prepare("select id from source where tenant_id = ? and deleted_at is null").get(tenantId);
  const policy = db.prepare("select id from retry_policy where tenant_id = ?").get(tenantId);
  if (!source || !policy) throw new Error(`Tenant ${tenantId} has no source, or never had an endpoint.`);
  const tenant: FilledTenant = {
    id: newTenantId,
    sourceId: source["id"] as string,
    retryPolicyId: policy["id"] as string,
    endpoints: [],
  };
  if (newTenantId === tenantId) return tenant;
  tenant.sourceId = newId("src");
  copyRows(db, "tenant", `id = '${tenantId}'`, { id: newTenantId });
  for (const table of CONFIG_TABLES) {
    copyRows(db, table, `tenant_id = '${tenantId}' and id = '${table === "source" ? source["id"] : policy["id"]}'`, {
      tenant_id: newTenantId,
      ...(table === "source" && { id: tenant.sourceId }),
    });
  }
  db.prepare("insert into tenant_directory (tenant_id, shard, created_at) values (?, '0', 0)").run(newTenantId);
  db.prepare("insert into source_directory (source_id, tenant_id) values (?, ?)").run(tenant.sourceId, newTenantId);
  return tenant;
}

/** More sources beside the one there is; gives back the ids of all. */
export function insertSources(db: DatabaseSync, tenant: FilledTenant, count: number): string[] {
  const ids = [tenant.sourceId];
  while (ids.length < count) {
    const id = newId("src");
    copyRows(db, "source", `tenant_id = '${tenant.id}' and id = '${tenant.sourceId}'`, {
      id,
      name: `filled-${ids.length}`,
    });
    db.prepare("insert into source_directory (source_id, tenant_id) values (?, ?)").run(id, tenant.id);
    ids.push(id);
  }
  return ids;
}

function copyRows(db: DatabaseSync, table: string, where: string, changed: Record<string, string>): void {
  const names = db
    .prepare("select name from pragma_table_info(?)")
    .all(table)
    .map((row) => row["name"] as string);
  const columns = names.map((name) => (Object.hasOwn(changed, name) ? `'${changed[name]}'` : name));
  db.exec(`insert into ${table} (${names}) select ${columns} from ${table} where ${where}`);
}

/** Endpoints with a subscription and a secret each. Nothing matches what a bench publishes. */
export function insertEndpoints(db: DatabaseSync, tenant: FilledTenant, count: number): void {
  const endpoint = db.prepare(
    `insert into endpoint (tenant_id, id, url, name, ordering_mode, route, retry_policy_id, created_at)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const secret = db.prepare(
    `insert into signing_secret (tenant_id, endpoint_id, slot, id, wrapped_key, active_from)
     values (?, ?, 0, ?, randomblob(67), ?)`,
  );
  const subscription = db.prepare(
    "insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at) values (?, ?, ?, ?, ?)",
  );
  const now = Date.now();
  for (let i = 0; i < count; i++) {
    const isStrict = i % 5 === 4;
    const made = { id: newId("ep"), subscriptionId: newId("sub"), isStrict };
    tenant.endpoints.push(made);
    const [mode, route] = isStrict ? ["strict", "lane"] : ["unordered", "queue"];
    endpoint.run(
      tenant.id,
      made.id,
      "http://127.0.0.1:9/filled",
      `filled ${i}`,
      mode!,
      route!,
      tenant.retryPolicyId,
      now,
    );
    secret.run(tenant.id, made.id, newId("sec"), now);
    subscription.run(tenant.id, made.subscriptionId, made.id, `filled.n${i}`, now);
  }
}

export function newId(prefix: Parameters<typeof createId>[0]): string {
  return createId(prefix, randomBytes(10));
}
