import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import { METHOD_NAME_ALL } from "hono/router";
import { AppError } from "../../app/app-error.ts";
import type { HttpContext } from "../context.ts";
import { readQuery } from "../request.ts";

/**
 * Refuses a query where none is read, so that nothing is accepted and ignored. Lists, raw publishes, and payloads read theirs, and
 * refuse themselves what they do not know.
 */
export const refuseUnknownQuery = createMiddleware<HttpContext>(async (c, next) => {
  const route = matchedRoutes(c).findLast(({ method }) => method !== METHOD_NAME_ALL);
  if (route && !readsQuery(route.method, route.path)) {
    const names = Object.keys(readQuery(c)).slice(0, 20);
    if (names.length > 0) {
      const errors = names.map((path) => ({ path: path.slice(0, 128), message: "is not a known parameter" }));
      throw new AppError("validation_failed", "This route takes no query parameters.", errors);
    }
  }
  await next();
});

function readsQuery(method: string, path: string): boolean {
  if (method === "POST") return path.endsWith("/events/raw");
  return method === "GET" && (!path.includes(":") || /\/(secrets|payload)$/.test(path));
}
