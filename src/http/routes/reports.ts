import { Hono } from "hono";
import { reportAttempts } from "../../app/report/attempts.ts";
import { reportDeadLetters } from "../../app/report/dead-letters.ts";
import { reportDisabled } from "../../app/report/disabled.ts";
import { reportFailures } from "../../app/report/failures.ts";
import { reportFilters } from "../../app/report/filters.ts";
import { reportLatency } from "../../app/report/latency.ts";
import { reportSchemaVersions } from "../../app/report/schema-versions.ts";
import { reportUndelivered } from "../../app/report/undelivered.ts";
import type { HttpContext } from "../context.ts";
import { presentAttemptGroup } from "../present/report-attempts.ts";
import { presentDeadLetterGroup } from "../present/report-dead-letters.ts";
import { presentDisabled } from "../present/report-disabled.ts";
import { presentFailureGroup } from "../present/report-failures.ts";
import { presentFilterGroup } from "../present/report-filters.ts";
import { presentLatencyGroup } from "../present/report-latency.ts";
import { presentVersionGroup } from "../present/report-schema-versions.ts";
import { presentUndelivered } from "../present/report-undelivered.ts";
import { presentReport } from "../present/report.ts";
import { readQuery } from "../request.ts";

export const reportRoutes = new Hono<HttpContext>()
  .get("/failures", async (c) => {
    const report = await reportFailures(c.var.deps, c.var.principal, readQuery(c));
    return c.json({ ...presentReport(report, presentFailureGroup), groups: report.groups });
  })
  .get("/dead-letters", async (c) => {
    const report = await reportDeadLetters(c.var.deps, c.var.principal, readQuery(c));
    return c.json({ ...presentReport(report, presentDeadLetterGroup), groups: report.groups });
  })
  .get("/undelivered", async (c) => {
    const report = await reportUndelivered(c.var.deps, c.var.principal, readQuery(c));
    return c.json({ ...presentReport(report, presentUndelivered), groups: report.groups });
  })
  .get("/disabled", async (c) =>
    c.json(presentReport(await reportDisabled(c.var.deps, c.var.principal, readQuery(c)), presentDisabled)),
  )
  .get("/latency", async (c) => {
    const report = await reportLatency(c.var.deps, c.var.principal, readQuery(c));
    return c.json({ ...presentReport(report, presentLatencyGroup), groups: report.groups });
  })
  .get("/schema-versions", async (c) => {
    const report = await reportSchemaVersions(c.var.deps, c.var.principal, readQuery(c));
    const { groups, types, typesLookedAt: types_looked_at } = report;
    return c.json({ ...presentReport(report, presentVersionGroup), groups, types, types_looked_at });
  })
  .get("/attempts", async (c) => {
    const report = await reportAttempts(c.var.deps, c.var.principal, readQuery(c));
    return c.json({ ...presentReport(report, presentAttemptGroup), groups: report.groups });
  })
  .get("/filters", async (c) => {
    const report = await reportFilters(c.var.deps, c.var.principal, readQuery(c));
    return c.json({ ...presentReport(report, presentFilterGroup), groups: report.groups });
  });
