import { createAttemptsReport } from "../storage/ledger/reports/attempts.ts";
import { createDeadLettersReport } from "../storage/ledger/reports/dead-letters.ts";
import { createDisabledReport } from "../storage/ledger/reports/disabled.ts";
import { createFailuresReport } from "../storage/ledger/reports/failures.ts";
import { createFiltersReport } from "../storage/ledger/reports/filters.ts";
import { createLatencyReport } from "../storage/ledger/reports/latency.ts";
import { createSchemaVersionsReport } from "../storage/ledger/reports/schema-versions.ts";
import { createUndeliveredReport } from "../storage/ledger/reports/undelivered.ts";

/** All that `GET /v1/reports` asks of a ledger. */
export function createReports(db: D1Database) {
  return {
    ...createAttemptsReport(db),
    ...createDeadLettersReport(db),
    ...createDisabledReport(db),
    ...createFailuresReport(db),
    ...createFiltersReport(db),
    ...createLatencyReport(db),
    ...createSchemaVersionsReport(db),
    ...createUndeliveredReport(db),
  };
}
