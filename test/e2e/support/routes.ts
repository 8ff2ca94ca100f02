/** Who may call a route at least. A publish key is not on the way to admin: it publishes and does nothing else. */
export type RouteAccess = "publish" | "read" | "admin" | "operator";

export interface Route {
  method: string;
  /** With `:id` where an id goes. */
  path: string;
  access: RouteAccess;
  /** A list or a creation: nothing that exists is named in its path. */
  body?: unknown;
}

const crud = (noun: string, access: { read: RouteAccess; write: RouteAccess }, create: unknown, patch: unknown) => [
  { method: "POST", path: `/v1/${noun}`, access: access.write, body: create },
  { method: "GET", path: `/v1/${noun}`, access: access.read },
  { method: "GET", path: `/v1/${noun}/:id`, access: access.read },
  { method: "PATCH", path: `/v1/${noun}/:id`, access: access.write, body: patch },
  { method: "DELETE", path: `/v1/${noun}/:id`, access: access.write },
];

const OWN = { read: "read", write: "admin" } as const;
const OPERATORS = { read: "operator", write: "operator" } as const;
const EVENT = { type: "order.created", source: "orders", payload: 1 };

/** Every route of the API that is built, with bodies that are valid but for the ids in them. */
export const ROUTES: Route[] = [
  { method: "POST", path: "/v1/events", access: "publish", body: EVENT },
  { method: "POST", path: "/v1/events/raw", access: "publish", body: 1 },
  { method: "POST", path: "/v1/events/batch", access: "publish", body: { events: [EVENT] } },
  { method: "GET", path: "/v1/events", access: "read" },
  { method: "GET", path: "/v1/events/:id", access: "read" },
  { method: "GET", path: "/v1/events/:id/payload", access: "read" },
  { method: "DELETE", path: "/v1/events/:id/payload", access: "admin" },
  { method: "GET", path: "/v1/deliveries", access: "read" },
  { method: "GET", path: "/v1/deliveries/:id", access: "read" },
  { method: "GET", path: "/v1/deliveries/:id/attempts", access: "read" },
  { method: "POST", path: "/v1/deliveries/:id/retry", access: "admin" },
  { method: "POST", path: "/v1/deliveries/:id/replay", access: "admin" },
  { method: "POST", path: "/v1/deliveries/:id/cancel", access: "admin" },
  ...crud("sources", OWN, { name: "taken" }, { name: "taken" }),
  ...crud("endpoints", OWN, { url: "http://127.0.0.1:9" }, { name: "taken" }),
  { method: "POST", path: "/v1/endpoints/:id/disable", access: "admin" },
  { method: "POST", path: "/v1/endpoints/:id/enable", access: "admin" },
  { method: "POST", path: "/v1/endpoints/:id/pause", access: "admin" },
  { method: "POST", path: "/v1/endpoints/:id/resume", access: "admin" },
  { method: "GET", path: "/v1/endpoints/:id/lane", access: "read" },
  { method: "POST", path: "/v1/endpoints/:id/lane/skip", access: "admin", body: { delivery_id: "dlv_0" } },
  { method: "POST", path: "/v1/endpoints/:id/lane/move", access: "admin" },
  { method: "GET", path: "/v1/endpoints/:id/secrets", access: "read" },
  { method: "POST", path: "/v1/endpoints/:id/secrets/rotate", access: "admin" },
  ...crud("subscriptions", OWN, { endpoint_id: "ep_0", event_type_pattern: "*" }, { event_type_pattern: "taken" }),
  ...crud("api-keys", OWN, { scope: "read" }, { name: "taken" }),
  ...crud("tenants", OPERATORS, { name: "taken" }, { name: "taken" }),
];

/** The routes that the Worker's app says it has, as `METHOD /path`. Loaded at run time: its types are the Worker's. */
export async function routesOfApp(): Promise<string[]> {
  const module: string = new URL("../../../src/http/app.ts", import.meta.url).href;
  const { createApp } = await import(module);
  const routes: { method: string; path: string }[] = createApp({}).routes;
  const own = routes.filter(({ method, path }) => method !== "ALL" && path.startsWith("/v1/"));
  return [...new Set(own.map(({ method, path }) => `${method} ${path.replace(/\/$/, "")}`))];
}
