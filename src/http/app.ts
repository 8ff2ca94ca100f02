import { Hono, type Context, type MiddlewareHandler } from "hono";
import { matchedRoutes } from "hono/route";
import { METHOD_NAME_ALL } from "hono/router";
import { AppError } from "../app/app-error.ts";
import type { CentralDeps } from "../app/deps.ts";
import { describeFault, isStoreFault } from "../core/fault.ts";
import type { HttpContext } from "./context.ts";
import { boundUrl } from "./middleware/bound-url.ts";
import { refuseUnknownQuery } from "./middleware/refuse-unknown-query.ts";
import { refusePublishHeaders } from "./middleware/refuse-publish-headers.ts";
import { requireOperator, requirePrincipal } from "./middleware/authenticate.ts";
import { logRequest } from "./middleware/log-request.ts";
import { internalProblem, toProblem, type Problem } from "./problem.ts";
import { rateLimitHeaders } from "./rate-limit-headers.ts";
import { apiKeyRoutes } from "./routes/api-keys.ts";
import { docsRoutes } from "./routes/docs.ts";
import { deliveryRoutes } from "./routes/deliveries.ts";
import { endpointRoutes } from "./routes/endpoints.ts";
import { eventTypeRoutes } from "./routes/event-types.ts";
import { eventRoutes } from "./routes/events.ts";
import { reportRoutes } from "./routes/reports.ts";
import { findRoutes } from "./routes/find.ts";
import { exportRoutes } from "./routes/export.ts";
import { metricsRoutes, type MetricsOptions } from "./routes/metrics.ts";
import { publishRoutes, type PublishOptions } from "./routes/publish.ts";
import { replayRoutes } from "./routes/replays.ts";
import { sourceRoutes } from "./routes/sources.ts";
import { subscriptionRoutes } from "./routes/subscriptions.ts";
import { tenantRoutes } from "./routes/tenants.ts";
import { webhookKeyRoutes } from "./routes/webhook-keys.ts";
import { unknownRoute } from "./unknown-route.ts";

export interface AppOptions extends PublishOptions, MetricsOptions {
  createRequestId(): string;
  /** Milliseconds since 1970 UTC. */
  now(): number;
  composeCentral(env: Env, context: ExecutionContext): CentralDeps;
}

/** Seconds after which a caller may try again when a store was away. */
const RETRY_AFTER_SECONDS = "1";

/** The HTTP API. Everything it needs of the outside comes with the options. */
export function createApp(options: AppOptions) {
  const app = new Hono<HttpContext>();
  app.use(async (c, next) => {
    c.set("requestId", options.createRequestId());
    await next();
    // A caller's own X-Request-Id is not taken over: it would put foreign text into our log, and two requests under one id.
    c.header("X-Request-Id", c.var.requestId);
    // Nothing that is behind a key belongs into a cache.
    c.header("Cache-Control", c.var.cacheControl ?? "no-store");
  });
  app.use(logRequest(options.now));
  app.use(boundUrl);
  app.get("/health", (c) => c.json({ status: "ok" }));
  app.route("/metrics", metricsRoutes(options));
  app.route("/", docsRoutes);
  const withCentral: MiddlewareHandler<HttpContext> = async (c, next) => {
    c.set("central", options.composeCentral(c.env, c.executionCtx as ExecutionContext));
    await next();
  };
  app.use("/.well-known/webhook-keys/*", withCentral, refuseUnknownQuery);
  app.route("/.well-known/webhook-keys", webhookKeyRoutes);
  app.use("/v1/*", withCentral);

  app.use("/v1/*", refusePublishHeaders);
  app.use("/v1/*", refuseUnknownQuery);
  app.route("/v1/events", publishRoutes(options));
  for (const [path, routes, guard] of [
    ["/v1/events", eventRoutes, requirePrincipal(options)],
    ["/v1/deliveries", deliveryRoutes, requirePrincipal(options)],
    ["/v1/reports", reportRoutes, requirePrincipal(options)],
    ["/v1/find", findRoutes, requirePrincipal(options)],
    ["/v1/export", exportRoutes, requirePrincipal(options)],
    ["/v1/replays", replayRoutes, requirePrincipal(options)],
    ["/v1/sources", sourceRoutes, requirePrincipal(options)],
    ["/v1/endpoints", endpointRoutes, requirePrincipal(options)],
    ["/v1/subscriptions", subscriptionRoutes, requirePrincipal(options)],
    ["/v1/event-types", eventTypeRoutes, requirePrincipal(options)],
    ["/v1/api-keys", apiKeyRoutes, requirePrincipal(options)],
    ["/v1/tenants", tenantRoutes, requireOperator(options)],
  ] as const) {
    app.route(path, new Hono<HttpContext>().use(exceptUnknownRoutes(guard)).route("/", routes));
  }

  app.notFound((c) => {
    const { error, allow } = unknownRoute(app, c);
    return respond(c, toProblem(error, c.var.requestId), allow === undefined ? {} : { Allow: allow });
  });
  app.onError((error, c) => {
    if (error instanceof AppError) {
      if (error.cause !== undefined) logFault(c, error.cause);
      return respond(c, toProblem(error, c.var.requestId), rateLimitHeaders(error));
    }
    logFault(c, error);
    if (isStoreFault(error)) return respond(c, toProblem(storeAway(), c.var.requestId));
    return respond(c, internalProblem(c.var.requestId));
  });
  return app;
}

/** A route that does not exist is 404, token or not: only one that a handler answers is guarded. */
function exceptUnknownRoutes(guard: MiddlewareHandler<HttpContext>): MiddlewareHandler<HttpContext> {
  return (c, next) => (matchedRoutes(c).some(({ method }) => method !== METHOD_NAME_ALL) ? guard(c, next) : next());
}

function storeAway(): AppError {
  return new AppError("unavailable", "A store the relay needs does not answer. Try again.");
}

function respond(c: Context<HttpContext>, problem: Problem, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: {
      "Content-Type": "application/problem+json",
      "X-Request-Id": c.var.requestId,
      "Cache-Control": "no-store",
      ...(problem.status === 401 && { "WWW-Authenticate": "Bearer" }),
      ...(problem.status === 503 && { "Retry-After": RETRY_AFTER_SECONDS }),
      ...headers,
    },
  });
}

function logFault(c: Context<HttpContext>, error: unknown): void {
  const { requestId } = c.var;
  console.error(
    JSON.stringify({ level: "error", event: "request_fault", request_id: requestId, error: describeFault(error) }),
  );
}
