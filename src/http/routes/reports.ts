import { Hono } from "hono";
import { reportDeadLetters } from "../../app/report/dead-letters.ts";
import { reportDisabled } from "../../app/report/disabled.ts";
import { reportFailures } from "../../app/report/failures.ts";
import { reportUndelivered } from "../../app/report/undelivered.ts";
import type { HttpContext } from "../context.ts";
import { presentDeadLetterGroup } from "../present/report-dead-letters.ts";
import { presentDisabled } from "../present/report-disabled.ts";
import { presentFailureGroup } from "../present/report-failures.ts";
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
  );
