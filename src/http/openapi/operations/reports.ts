import { AttemptsInput } from "../../../app/report/attempts.ts";
import { LatencyInput } from "../../../app/report/latency.ts";
import { ReportInput } from "../../../app/report/report-input.ts";
import { SchemaVersionsInput } from "../../../app/report/schema-versions.ts";
import { UndeliveredInput } from "../../../app/report/undelivered.ts";
import { AttemptsAnswer } from "../../present/report-attempts.ts";
import { DeadLettersAnswer } from "../../present/report-dead-letters.ts";
import { DisabledAnswer } from "../../present/report-disabled.ts";
import { FailuresAnswer } from "../../present/report-failures.ts";
import { FiltersAnswer } from "../../present/report-filters.ts";
import { LatencyAnswer } from "../../present/report-latency.ts";
import { SchemaVersionsAnswer } from "../../present/report-schema-versions.ts";
import { UndeliveredAnswer } from "../../present/report-undelivered.ts";
import { answer, type Operation } from "../operation.ts";

const REPORT = { method: "get", tag: "Reports", access: "read", query: ReportInput } as const;

export const reportOperations: Operation[] = [
  {
    ...REPORT,
    id: "reportFailures",
    path: "/v1/reports/failures",
    summary: "Count failed deliveries by subscription and error class",
    description:
      "Deliveries with a request in the window that did not succeed, whatever came of them since, and those that ended `failed`, `dead_letter` or `expired` in it. Faults of the relay and test sends are not among them.",
    answers: { 200: answer("The groups, most deliveries first, at most 1,000.", FailuresAnswer) },
  },
  {
    ...REPORT,
    id: "reportDeadLetters",
    path: "/v1/reports/dead-letters",
    summary: "Count open dead letters by subscription and reason",
    description:
      "Those that have neither been replayed nor expired, as they are now; with `window` those that died in it.",
    answers: { 200: answer("The groups, most deliveries first, at most 1,000.", DeadLettersAnswer) },
  },
  {
    ...REPORT,
    id: "reportUndelivered",
    path: "/v1/reports/undelivered",
    summary: "Look at what each endpoint is still owed: its oldest open delivery, and how many there are",
    query: UndeliveredInput,
    answers: { 200: answer("Endpoints with open deliveries, oldest first, at most 1,000.", UndeliveredAnswer) },
  },
  {
    ...REPORT,
    id: "reportDisabled",
    path: "/v1/reports/disabled",
    summary: "List endpoints and subscriptions that were disabled lately",
    description: "Enabled again or not; in the last seven days unless `window` says otherwise.",
    answers: { 200: answer("Newest first, at most 1,000.", DisabledAnswer) },
  },
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
    summary: "Measure what filters cost, by subscription",
    description:
      "Of what they took of the events that were relayed in the window. What they turned away is not on record.",
    answers: { 200: answer("The groups, slowest first, at most 1,000.", FiltersAnswer) },
  },
];
