import { compareKeys, firstDeliveriesAfter, type DeliveryKey } from "../../core/row-keys.ts";
import { eventIdTimeMs, firstEventIdAt, parseDeliveryId, type DeliveryRef } from "../../core/ids.ts";
import { mergePages } from "../../core/merge-pages.ts";
import type { Delivery } from "../../core/model.ts";
import { invalidField } from "../app-error.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { parseExport, readPlace } from "./export-input.ts";
import { PAGE_ROWS, settledUntil, startExport, type Export } from "./export-rows.ts";

interface Page {
  rows: Delivery[];
  stoppedAt: DeliveryKey | null;
}

export interface ExportDeliveriesDeps extends Pick<Runtime, "now"> {
  findOldestFanOutAt(tenantId: string): Promise<number | null>;
  findDelivery(tenantId: string, ref: DeliveryRef, now: number): Promise<Delivery | null>;
  exportDeliveries(
    tenantId: string,
    after: { first: [eventId: string, endpointId: string]; replay: DeliveryKey },
    before: { eventId: string; createdAt: number },
    limit: number,
    now: number,
  ): Promise<{ firsts: Page; replays: Page }>;
}

const BEGINNING: DeliveryKey = [-1, "", "", 0];

/** Oldest first by created_at, replays among the others. */
export async function exportDeliveries(
  deps: ExportDeliveriesDeps,
  principal: Principal,
  query: unknown,
): Promise<Export<Delivery>> {
  requireReader(principal);
  const { tenantId } = principal;
  const input = parseExport(query);
  const until = settledUntil(deps.now(), input.created_before, await deps.findOldestFanOutAt(tenantId));
  const before = { eventId: firstEventIdAt(until), createdAt: until };
  const bound: DeliveryKey = input.created_after === undefined ? BEGINNING : [input.created_after + 1, "", "", 0];
  const given = await placeOf(deps, tenantId, input);
  return startExport<Delivery, DeliveryKey>(
    deps,
    {
      kind: "dlv",
      from: compareKeys(given, bound) > 0 ? given : bound,
      until,
      end: [until, "", "", 0],
      async read(after) {
        const walks = { first: firstDeliveriesAfter(after), replay: after };
        const { firsts, replays } = await deps.exportDeliveries(tenantId, walks, before, PAGE_ROWS, deps.now());
        const { rows, next } = mergePages([firsts, replays], placeIn, compareKeys, PAGE_ROWS);
        return { rows: rows.map((row) => ({ row, place: placeIn(row) })), next };
      },
    },
    input.limit,
  );
}

async function placeOf(
  deps: ExportDeliveriesDeps,
  tenantId: string,
  { cursor, after }: { cursor?: string | undefined; after?: string | undefined },
): Promise<DeliveryKey> {
  if (cursor !== undefined) return readPlace<DeliveryKey>(cursor, "dlv", ["number", "string", "string", "number"]);
  if (after === undefined) return BEGINNING;
  const ref = parseDeliveryId(after);
  if (!ref.ok) throw invalidField("after", "is not a delivery id");
  const { eventId, endpointId, replayNo } = ref.value;
  if (replayNo === 0) return [eventIdTimeMs(eventId), eventId, endpointId, 0];
  // When a replay was made is not in its id.
  const replay = await deps.findDelivery(tenantId, ref.value, deps.now());
  if (!replay) throw invalidField("after", "is not a delivery of this tenant, or has expired: go on from another row");
  return placeIn(replay);
}

function placeIn({ createdAt, eventId, endpointId, replayNo }: Delivery): DeliveryKey {
  return [createdAt, eventId, endpointId, replayNo];
}
