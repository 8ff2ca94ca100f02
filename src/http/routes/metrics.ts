import { Hono } from "hono";
import { AppError } from "../../app/app-error.ts";
import { readMetrics, type ReadMetricsDeps } from "../../app/metrics/read-metrics.ts";
import { parseInput } from "../../app/parse-input.ts";
import { exposition, EXPOSITION_TYPE } from "../../core/exposition.ts";
import type { HttpContext } from "../context.ts";
import { isSameToken } from "../middleware/authenticate.ts";
import { NothingInput, readBearerToken, readQuery } from "../request.ts";
import { noSuchRoute } from "../unknown-route.ts";

export interface MetricsOptions {
  /** Undefined when nobody may look: then there is no such route, by any method. */
  metricsToken(env: Env): string | undefined;
  composeMetrics(env: Env): ReadMetricsDeps;
}

/** What Prometheus scrapes. */
export function metricsRoutes(options: MetricsOptions) {
  return new Hono<HttpContext>()
    .use(async (c, next) => {
      if (options.metricsToken(c.env) === undefined) throw noSuchRoute();
      await next();
    })
    .get("/", async (c) => {
      if (!(await isSameToken(readBearerToken(c), options.metricsToken(c.env)!)))
        throw new AppError("unauthorized", "What is wanted as bearer token is METRICS_TOKEN, and no other.");
      parseInput(NothingInput, readQuery(c));
      const families = await readMetrics(options.composeMetrics(c.env));
      return c.body(exposition(families), 200, { "Content-Type": EXPOSITION_TYPE });
    });
}
