import type { Event } from "../model.ts";
import { formatTime } from "../timestamps.ts";
import type { EventField } from "./language.ts";
import { parsePayload } from "./payload.ts";
import type { Run, Value } from "./values.ts";

/** What a filter is evaluated on. */
export type FilterInput = Pick<Run, "event" | "payload">;

/** Of an event: what a filter may ask of it beside its payload. */
export type FilteredEvent = Pick<
  Event,
  | "id"
  | "type"
  | "schemaVersion"
  | "orderingKey"
  | "idempotencyKey"
  | "causeEventId"
  | "occurredAt"
  | "relayedAt"
  | "contentType"
> & { sourceName: string };

/** Of one event for however many filters, made when the first of them asks. `payload` is null when it is not JSON. */
export function createFilterInput(event: FilteredEvent, payload: Uint8Array | null): FilterInput {
  let facts: Map<string, Value> | null = null;
  // In an object, since what was parsed may be null: raw, that may stand behind a payload full of white space.
  let parsed: { value: ReturnType<FilterInput["payload"]> } | null = null;
  return {
    event: () => (facts ??= factsOf(event)),
    payload: () => {
      if (payload === null) return undefined;
      return (parsed ??= { value: parsePayload(payload) }).value;
    },
  };
}

function factsOf(event: FilteredEvent): Map<string, Value> {
  const facts: [EventField, Value][] = [
    ["id", event.id],
    ["type", event.type],
    ["source", event.sourceName],
    ["schema_version", BigInt(event.schemaVersion)],
    ["ordering_key", event.orderingKey],
    ["idempotency_key", event.idempotencyKey],
    ["cause_event_id", event.causeEventId],
    ["occurred_at", formatTime(event.occurredAt)],
    ["relayed_at", formatTime(event.relayedAt)],
    ["content_type", event.contentType],
  ];
  return new Map(facts.filter(([, value]) => value !== null));
}
