/** What `npm run bench:reports` asks, beside the statements of docs/questions.sql: a new report gets its lines here. */
export const REPORT_CALLS: { name: string; path: string }[] = [
  { name: "failures", path: "/v1/reports/failures" },
  { name: "failures, 24 h", path: "/v1/reports/failures?window=24h" },
  { name: "failures, 7 d", path: "/v1/reports/failures?window=7d" },
  { name: "failures, all", path: "/v1/reports/failures?window=365d" },
  { name: "dead letters", path: "/v1/reports/dead-letters" },
  { name: "dead letters, 24 h", path: "/v1/reports/dead-letters?window=24h" },
  { name: "undelivered", path: "/v1/reports/undelivered" },
  { name: "disabled", path: "/v1/reports/disabled" },
];
