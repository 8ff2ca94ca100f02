import { ReportInput } from "../../../app/report/report-input.ts";
import { UndeliveredInput } from "../../../app/report/undelivered.ts";
import { DeadLettersAnswer } from "../../present/report-dead-letters.ts";
import { DisabledAnswer } from "../../present/report-disabled.ts";
import { FailuresAnswer } from "../../present/report-failures.ts";
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
];
