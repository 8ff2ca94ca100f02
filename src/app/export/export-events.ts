import { compareKeys } from "../../core/row-keys.ts";
import { firstEventIdAt, isEventId } from "../../core/ids.ts";
import type { Event } from "../../core/model.ts";
import { invalidField } from "../app-error.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { parseExport, readPlace } from "./export-input.ts";
import { PAGE_ROWS, settledUntil, startExport, type Export } from "./export-rows.ts";

type Place = [eventId: string];

export interface ExportEventsDeps extends Pick<Runtime, "now"> {
  exportEvents(
    tenantId: string,
    after: string,
    before: string,
    limit: number,
    now: number,
  ): Promise<{ rows: Event[]; stoppedAt: string | null }>;
}

/** Oldest first, in order of id. */
export function exportEvents(deps: ExportEventsDeps, principal: Principal, query: unknown): Export<Event> {
  requireReader(principal);
  const input = parseExport(query);
  const until = settledUntil(deps.now(), input.created_before, null);
  const before = firstEventIdAt(until);
  const bound: Place = [input.created_after === undefined ? "" : firstEventIdAt(input.created_after + 1)];
  const given = placeOf(input);
  return startExport<Event, Place>(
    deps,
    {
      kind: "evt",
      from: compareKeys(given, bound) > 0 ? given : bound,
      until,
      end: [before],
      async read([after]) {
        const { rows, stoppedAt } = await deps.exportEvents(principal.tenantId, after, before, PAGE_ROWS, deps.now());
        return { rows: rows.map((row) => ({ row, place: [row.id] })), next: stoppedAt === null ? null : [stoppedAt] };
      },
    },
    input.limit,
  );
}

function placeOf({ cursor, after }: { cursor?: string | undefined; after?: string | undefined }): Place {
  if (cursor !== undefined) return readPlace<Place>(cursor, "evt", ["string"]);
  if (after !== undefined && !isEventId(after)) throw invalidField("after", "is not an event id");
  return [after ?? ""];
}
