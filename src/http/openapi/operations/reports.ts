import { LatencyInput } from "../../../app/report/latency.ts";
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
];
