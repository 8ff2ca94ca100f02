import { createMiddleware } from "hono/factory";
import { AppError, invalidField, notFound } from "../../app/app-error.ts";
import { authenticate, hashKey, shardOfKey, unauthorized } from "../../app/authenticate.ts";
import type { CentralDeps, ShardDeps } from "../../app/deps.ts";
import type { PublisherRef } from "../../app/publish/publish-config.ts";
import { isId } from "../../core/ids.ts";
import type { Context } from "hono";
import type { HttpContext } from "../context.ts";
import { readBearerToken, readJsonOf } from "../request.ts";

export interface AuthOptions {
  operatorToken(env: Env): string;
  shards(env: Env): string[];
  composeShard(env: Env, context: ExecutionContext, shard: string): ShardDeps;
}

/** Lets the operator through. For routes that are about tenants rather than of one. */
export function requireOperator(options: AuthOptions) {
  return createMiddleware<HttpContext>(async (c, next) => {
    const token = readBearerToken(c);
    if (await isOperator(options, c, token)) {
      if (c.req.header("X-Tenant-Id") !== undefined) throw invalidField("X-Tenant-Id", "has no meaning for this route");
      return next();
    }
    const { deps, ref } = await callerOfKey(options, c, token);
    await authenticate(deps, ref.keyHash);
    throw new AppError("forbidden", "This needs the operator token.");
  });
}

/** Sets `principal` and the `deps` of its shard, from an API key, or from the operator token with `X-Tenant-Id`. */
export function requirePrincipal(options: AuthOptions) {
  return createMiddleware<HttpContext>(async (c, next) => {
    const { deps, ref } = await findCaller(options, c);
    c.set("deps", deps);
    c.set(
      "principal",
      "keyHash" in ref
        ? await authenticate(deps, ref.keyHash)
        : { tenantId: ref.tenantId, scope: "admin" as const, sourceId: null },
    );
    refuseOtherTenant(c, c.var.principal.tenantId);
    await next();
  });
}

/** A key has its tenant, and a signature: whoever names another one beside it would write where they did not mean to. */
export function refuseOtherTenant(c: Context<HttpContext>, tenantId: string): void {
  const named = c.req.header("X-Tenant-Id");
  if (named !== undefined && named !== tenantId) throw invalidField("X-Tenant-Id", "is not the tenant of this caller");
}

/**
 * Whom a request claims to be, without a trip to the ledger for an API key: the shard and how to find the caller in it. The
 * operator's tenant is checked here.
 */
export async function findCaller(
  options: AuthOptions,
  c: Context<HttpContext>,
): Promise<{ deps: ShardDeps; ref: PublisherRef }> {
  const token = readBearerToken(c);
  if (await isOperator(options, c, token)) {
    const { tenantId, shard } = await findTenantOfOperator(c.var.central, c);
    return { deps: options.composeShard(c.env, c.executionCtx as ExecutionContext, shard), ref: { tenantId } };
  }
  return callerOfKey(options, c, token);
}

async function callerOfKey(options: AuthOptions, c: Context<HttpContext>, token: string) {
  const shard = shardOfKey(token);
  if (shard === null || !options.shards(c.env).includes(shard)) throw unauthorized();
  const deps = options.composeShard(c.env, c.executionCtx as ExecutionContext, shard);
  return { deps, ref: { keyHash: await hashKey(token) } };
}

/** `POST /v1/api-keys` may name the tenant in its body instead, since it makes a tenant's first key. */
async function findTenantOfOperator(central: CentralDeps, c: Context<HttpContext>) {
  const header = c.req.header("X-Tenant-Id");
  const named = header ?? (await tenantIdOfNewKey(c));
  if (typeof named !== "string") {
    throw new AppError("validation_failed", "The operator token acts for a tenant: name it in X-Tenant-Id.", [
      { path: "X-Tenant-Id", message: "is required with the operator token" },
    ]);
  }
  const entry = isId("ten", named) ? await central.directory.find(named) : null;
  if (!entry || !(await central.tenantStore(entry.shard).find(named))) {
    throw header === undefined ? invalidField("tenant_id", "is not a tenant") : notFound("tenant");
  }
  return { tenantId: named, shard: entry.shard };
}

async function tenantIdOfNewKey(c: Context<HttpContext>): Promise<unknown> {
  if (c.req.method !== "POST" || c.req.path !== "/v1/api-keys") return undefined;
  const body = await readJsonOf(c.req.raw.clone() as Request);
  return (body as { tenant_id?: unknown } | null)?.tenant_id;
}

function isOperator(options: AuthOptions, c: Context<HttpContext>, token: string): Promise<boolean> {
  return isSameToken(token, options.operatorToken(c.env));
}

/** Compares hashes, so that the time it takes says nothing about the token. */
export async function isSameToken(token: string, expectedToken: string): Promise<boolean> {
  const [given, expected] = await Promise.all([hashKey(token), hashKey(expectedToken)]);
  return given.reduce((difference, byte, i) => difference | (byte ^ expected[i]!), 0) === 0;
}
