import { Hono } from "hono";
import { reportDeadLetters } from "../../app/report/dead-letters.ts";
import { reportFailures } from "../../app/report/failures.ts";
import type { HttpContext } from "../context.ts";
import { presentDeadLetterGroup } from "../present/report-dead-letters.ts";
import { presentFailureGroup } from "../present/report-failures.ts";
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
  });
