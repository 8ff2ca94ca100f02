export interface EmptyOutboxesDeps {
  /** The next tenants behind `after` of whose transitions something is to be told. */
  listRaisedTenants(after: string, limit: number): Promise<string[]>;
  /** Tells of a part of it; says whether more may be left. */
  publishRaised(tenantId: string): Promise<boolean>;
  logFault(what: string, error: unknown): void;
}

/** Where the walk over tenants goes on. */
export interface OutboxWalk {
  after: string;
}

const TENANTS_AT_ONCE = 50;

/** Publishes the operational events that whoever raised them did not: it died, or a store was away. */
export async function emptyOutboxes(deps: EmptyOutboxesDeps, walk: OutboxWalk): Promise<boolean> {
  const tenants = await deps.listRaisedTenants(walk.after, TENANTS_AT_ONCE);
  const hasMoreTenants = tenants.length === TENANTS_AT_ONCE;
  walk.after = hasMoreTenants ? tenants.at(-1)! : "";
  let hasMoreOfOne = false;
  for (const tenantId of tenants) {
    try {
      if (await deps.publishRaised(tenantId)) hasMoreOfOne = true;
    } catch (error) {
      // One tenant's must not keep the others'.
      deps.logFault("watchdog: publish operational events", error);
    }
  }
  return hasMoreTenants || hasMoreOfOne;
}
