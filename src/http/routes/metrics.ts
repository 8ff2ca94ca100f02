import { Hono } from "hono";
import { AppError } from "../../app/app-error.ts";
import { unauthorized } from "../../app/authenticate.ts";
import { readMetrics, type ReadMetricsDeps } from "../../app/metrics/read-metrics.ts";
import { parseInput } from "../../app/parse-input.ts";
import { exposition, EXPOSITION_TYPE } from "../../core/exposition.ts";
import type { HttpContext } from "../context.ts";
import { isSameToken } from "../middleware/authenticate.ts";
import { NothingInput, readBearerToken, readQuery } from "../request.ts";

export interface MetricsOptions {
  /** Undefined when nobody may look: then there is no such route, by any method. */
  metricsToken(env: Env): string | undefined;
  composeMetrics(env: Env): ReadMetricsDeps;
}

/** What Prometheus scrapes. */
export function metricsRoutes(options: MetricsOptions) {
  return new Hono<HttpContext>()
    .use(async (c, next) => {
      if (options.metricsToken(c.env) === undefined) throw new AppError("not_found", "There is no such route.");
      await next();
    })
    .get("/", async (c) => {
      if (!(await isSameToken(readBearerToken(c), options.metricsToken(c.env)!))) throw unauthorized();
      parseInput(NothingInput, readQuery(c));
      const families = await readMetrics(options.composeMetrics(c.env));
      return c.body(exposition(families), 200, { "Content-Type": EXPOSITION_TYPE });
    });
}
