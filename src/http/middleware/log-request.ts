import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import { METHOD_NAME_ALL } from "hono/router";
import type { HttpContext } from "../context.ts";

/**
 * One line a request, on standard output. The route is its template: paths and queries hold ids, and what people put there by
 * mistake; headers and bodies hold secrets. None of them is ever printed.
 */
export function logRequest(now: () => number) {
  return createMiddleware<HttpContext>(async (c, next) => {
    const startedAt = now();
    await next();
    const route = matchedRoutes(c).findLast(({ method }) => method !== METHOD_NAME_ALL)?.path ?? null;
    const { status } = c.res;
    console.log(
      JSON.stringify({
        level: status >= 500 ? "error" : "info",
        event: "request",
        request_id: c.var.requestId,
        method: METHODS.has(c.req.method) ? c.req.method : "other",
        route: route && route.replaceAll(/:(\w+)/g, "{$1}"),
        status,
        duration_ms: now() - startedAt,
        tenant_id: c.get("tenantId") ?? c.get("principal")?.tenantId ?? null,
      }),
    );
  });
}

/** What a caller writes there ends in no line, as far as the runtime lets it through: it knows some forty methods. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
