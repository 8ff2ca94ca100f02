import { ExportInput } from "../../../app/export/export-input.ts";
import { answer, type Operation } from "../operation.ts";

const LAST =
  "The last line is no row: `next_cursor` goes on from here, now or another day; `has_more` says whether there may be more " +
  "already; `until` is the time before which everything was exported. An answer without it was cut off: go on behind the last " +
  "whole row with `after`.";

export const exportOperations: Operation[] = [
  exportOf("Events", "events", "Oldest first, by `created_at`."),
  exportOf("Deliveries", "deliveries", "Oldest first, by `created_at`, each as it is when it is read."),
  exportOf("Attempts", "attempts", "In order of their events, oldest first; the times are those of the events."),
];

function exportOf(name: string, path: string, order: string): Operation {
  return {
    id: `export${name}`,
    method: "get",
    path: `/v1/export/${path}`,
    tag: "Export",
    summary: `Export ${path} as NDJSON`,
    description: `A row a line, as lists have it. ${order} ${LAST}`,
    access: "read",
    query: ExportInput,
    answers: { 200: { ...answer("Rows."), content: [{ type: "application/x-ndjson" }] } },
  };
}
