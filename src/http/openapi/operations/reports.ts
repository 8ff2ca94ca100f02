import { AttemptsInput } from "../../../app/report/attempts.ts";
import { LatencyInput } from "../../../app/report/latency.ts";
import { ReportInput } from "../../../app/report/report-input.ts";
import { SchemaVersionsInput } from "../../../app/report/schema-versions.ts";
import { AttemptsAnswer } from "../../present/report-attempts.ts";
import { FiltersAnswer } from "../../present/report-filters.ts";
import { SchemaVersionsAnswer } from "../../present/report-schema-versions.ts";
import { LatencyAnswer } from "../../present/report-latency.ts";
import { answer, type Operation } from "../operation.ts";

const REPORT = { method: "get", tag: "Reports", access: "read" } as const;

export const reportOperations: Operation[] = [
  {
    ...REPORT,
    id: "reportLatency",
    path: "/v1/reports/latency",
    query: LatencyInput,
    summary: "Measure how long deliveries took, by source or by endpoint",
    description:
      "Of what was relayed in the window, replays and test sends apart. Percentiles are of what has arrived: what has not is counted beside them.",
    answers: { 200: answer("The groups, most events first, at most 1,000.", LatencyAnswer) },
  },
  {
    ...REPORT,
    id: "reportSchemaVersions",
    path: "/v1/reports/schema-versions",
    query: SchemaVersionsInput,
    queryExample: { schema_version: "3" },
    summary: "Say which subscriptions get which version of which type today, and what they received lately",
    description:
      "Of subscriptions that are enabled, pinned or not. Without a pin the newest event of the window decides, or without one the newest registered version.",
    answers: {
      200: answer("Types by name, versions lowest first, at most 1,000.", SchemaVersionsAnswer),
    },
  },
  {
    ...REPORT,
    id: "reportAttempts",
    path: "/v1/reports/attempts",
    query: AttemptsInput,
    summary: "Count attempts and what came of them, by worker or by region",
    description:
      "Failed ones by when they began; those that succeeded, or are under way, of the events that were relayed in the window.",
    answers: { 200: answer("The groups, most failures first, at most 1,000.", AttemptsAnswer) },
  },
  {
    ...REPORT,
    id: "reportFilters",
    path: "/v1/reports/filters",
    query: ReportInput,
    summary: "Measure what filters cost, by subscription",
    description:
      "Of what they took of the events that were relayed in the window. What they turned away is not on record.",
    answers: { 200: answer("The groups, slowest first, at most 1,000.", FiltersAnswer) },
  },
];
