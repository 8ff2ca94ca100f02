import { Hono } from "hono";
import { reportLatency } from "../../app/report/latency.ts";
import type { HttpContext } from "../context.ts";
import { presentLatencyGroup } from "../present/report-latency.ts";
import { presentReport } from "../present/report.ts";
import { readQuery } from "../request.ts";

export const reportRoutes = new Hono<HttpContext>().get("/latency", async (c) => {
  const report = await reportLatency(c.var.deps, c.var.principal, readQuery(c));
  return c.json({ ...presentReport(report, presentLatencyGroup), groups: report.groups });
});
