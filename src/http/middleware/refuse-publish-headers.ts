import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import { METHOD_NAME_ALL } from "hono/router";
import { AppError } from "../../app/app-error.ts";
import { HOP_HEADER } from "../../core/hops.ts";
import type { HttpContext } from "../context.ts";

const PUBLISH_ROUTES = ["/v1/events", "/v1/events/raw", "/v1/events/batch"];

/**
 * Refuses what only publishing understands. A relay's own request may publish and nothing else: an endpoint that replays
 * deliveries would make a ring in which no event carries the count. And who sends an `Idempotency-Key` counts on it.
 */
export const refusePublishHeaders = createMiddleware<HttpContext>(async (c, next) => {
  const route = matchedRoutes(c).findLast(({ method }) => method !== METHOD_NAME_ALL);
  const isPublish = route?.method === "POST" && PUBLISH_ROUTES.includes(route.path);
  if (route && !isPublish) {
    if (c.req.header(HOP_HEADER) !== undefined) {
      throw new AppError(
        "loop_detected",
        `A relay's own requests (${HOP_HEADER}) may publish events and nothing else.`,
      );
    }
    if (route.method !== "GET" && c.req.header("Idempotency-Key") !== undefined) {
      throw new AppError("not_supported", "Only publishing takes an Idempotency-Key.", [
        { path: "Idempotency-Key", message: "is not supported here" },
      ]);
    }
  }
  await next();
});
