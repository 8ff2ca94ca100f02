import { compareKeys, type AttemptKey } from "../../core/row-keys.ts";
import { firstEventIdAt, parseDeliveryId, type DeliveryRef } from "../../core/ids.ts";
import type { Attempt } from "../../core/model.ts";
import { invalidField } from "../app-error.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { parseExport, readPlace } from "./export-input.ts";
import { PAGE_ROWS, settledUntil, startExport, type Export } from "./export-rows.ts";

type ExportedAttempt = Attempt & DeliveryRef;

export interface ExportAttemptsDeps extends Pick<Runtime, "now"> {
  exportAttempts(
    tenantId: string,
    after: AttemptKey,
    beforeEventId: string,
    limit: number,
    now: number,
  ): Promise<{ rows: ExportedAttempt[]; stoppedAt: AttemptKey | null }>;
}

/**
 * In order of their events, oldest first, each delivery's in order. The bounds of time are those of the events: no index puts
 * attempts in an order of their own, and one would be a row more for each.
 */
export function exportAttempts(
  deps: ExportAttemptsDeps,
  principal: Principal,
  query: unknown,
): Export<ExportedAttempt> {
  requireReader(principal);
  const input = parseExport(query);
  const until = settledUntil(deps.now(), input.created_before, null);
  const before = firstEventIdAt(until);
  const lowest = input.created_after === undefined ? "" : firstEventIdAt(input.created_after + 1);
  const bound: AttemptKey = [lowest, "", 0, 0];
  const given = placeOf(input);
  return startExport<ExportedAttempt, AttemptKey>(
    deps,
    {
      kind: "att",
      from: compareKeys(given, bound) > 0 ? given : bound,
      until,
      end: [before, "", 0, 0],
      async read(after) {
        const { rows, stoppedAt } = await deps.exportAttempts(principal.tenantId, after, before, PAGE_ROWS, deps.now());
        return { rows: rows.map((row) => ({ row, place: placeIn(row) })), next: stoppedAt };
      },
    },
    input.limit,
  );
}

function placeOf({ cursor, after }: { cursor?: string | undefined; after?: string | undefined }): AttemptKey {
  if (cursor !== undefined) return readPlace<AttemptKey>(cursor, "att", ["string", "string", "number", "number"]);
  if (after === undefined) return ["", "", 0, 0];
  const [, id, number] = /^(\w{1,64}):([1-9]\d{0,8})$/.exec(after) ?? [];
  const ref = parseDeliveryId(id ?? "");
  if (!ref.ok) throw invalidField("after", "is not an attempt id");
  return [ref.value.eventId, ref.value.endpointId, ref.value.replayNo, Number(number)];
}

function placeIn({ eventId, endpointId, replayNo, attemptNumber }: ExportedAttempt): AttemptKey {
  return [eventId, endpointId, replayNo, attemptNumber];
}
