import { Hono } from "hono";
import { reportLatency } from "../../app/report/latency.ts";
import { reportSchemaVersions } from "../../app/report/schema-versions.ts";
import type { HttpContext } from "../context.ts";
import { presentLatencyGroup } from "../present/report-latency.ts";
import { presentVersionGroup } from "../present/report-schema-versions.ts";
import { presentReport } from "../present/report.ts";
import { readQuery } from "../request.ts";

export const reportRoutes = new Hono<HttpContext>()
  .get("/latency", async (c) => {
    const report = await reportLatency(c.var.deps, c.var.principal, readQuery(c));
    return c.json({ ...presentReport(report, presentLatencyGroup), groups: report.groups });
  })
  .get("/schema-versions", async (c) => {
    const report = await reportSchemaVersions(c.var.deps, c.var.principal, readQuery(c));
    const { groups, types } = report;
    return c.json({ ...presentReport(report, presentVersionGroup), groups, types });
  });
