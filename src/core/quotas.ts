import type { Tenant } from "./model.ts";

/** Endpoints that a tenant of each plan may have, unless it has a quota of its own. */
export type EndpointQuotas = Record<Tenant["plan"], number>;

/** What a tenant may have of the rest, whatever its plan: a publish is matched against all of it. */
export const MAX_SOURCES = 1_000;
export const MAX_SUBSCRIPTIONS = 10_000;
export const MAX_API_KEYS = 1_000;
/** Of all its filters together: each publish may be matched against all of them, and an isolate remembers them. */
export const MAX_FILTER_CHARACTERS = 1_000_000;
/** Of all event types together. */
export const MAX_EVENT_TYPE_VERSIONS = 2_000;
/** Of the schemas of all of them together: isolates keep them. */
export const MAX_JSON_SCHEMA_CHARACTERS = 1_048_576;
