import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import { METHOD_NAME_ALL } from "hono/router";
import { AppError } from "../../app/app-error.ts";
import { HOP_HEADER } from "../../core/hops.ts";
import type { HttpContext } from "../context.ts";

const PUBLISH_ROUTES = ["/v1/events", "/v1/events/raw", "/v1/events/batch"];

/**
 * What a relay delivers may be published, and nothing else: an endpoint that replays deliveries would make a ring in which no
 * event carries the count.
 */
export const refuseRelayed = createMiddleware<HttpContext>(async (c, next) => {
  if (c.req.header(HOP_HEADER) !== undefined) {
    const route = matchedRoutes(c).findLast(({ method }) => method !== METHOD_NAME_ALL);
    const isPublish = route?.method === "POST" && PUBLISH_ROUTES.includes(route.path);
    if (route && !isPublish) {
      throw new AppError(
        "loop_detected",
        `A relay's own requests (${HOP_HEADER}) may publish events and nothing else.`,
      );
    }
  }
  await next();
});
