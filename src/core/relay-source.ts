/**
 * Every tenant has a source that is the relay's own: of test sends and of operational events. Its row is born deleted, so it
 * is in no list, takes no quota and has no key, and its name is nobody else's (`SOURCE_NAME`).
 */
export const RELAY_SOURCE_NAME = "hooklane";

/** One a tenant, made by whoever needs it first. */
export function relaySourceId(tenantId: string): string {
  return tenantId.replace(/^ten_/, "src_");
}
