import { checkFilter, compileFilter, runFilter, type FilterResult } from "../../../../src/core/filter/filter.ts";
import { createFilterInput, type FilteredEvent } from "../../../../src/core/filter/filter-input.ts";
import { MAX_FILTER_STEPS } from "../../../../src/core/filter/language.ts";

export const EVENT: FilteredEvent = {
  id: "evt_01m8qb95ff0tbytp856nm7t7fd",
  type: "order.paid",
  sourceName: "shop",
  schemaVersion: 2,
  orderingKey: null,
  idempotencyKey: "k1",
  causeEventId: null,
  occurredAt: Date.UTC(2026, 0, 31, 12),
  relayedAt: Date.UTC(2026, 0, 31, 12, 0, 1),
  contentType: "application/json",
};

/** A filter on a payload that is written as JSON; null is one that is none. Throws when the filter cannot be saved. */
export function evaluate(source: string, payload: string | null = "{}", maxSteps = MAX_FILTER_STEPS): FilterResult {
  const fault = checkFilter(source);
  if (fault) throw new Error(`${fault.message} at ${fault.position}: ${source}`);
  const filter = compileFilter(source);
  if (!filter.ok) throw new Error(source);
  const bytes = payload === null ? null : new TextEncoder().encode(payload);
  return runFilter(filter.value, createFilterInput(EVENT, bytes), maxSteps);
}

/** In a word: `match`, `no match`, `absent`, or the reason of a failure. */
export function verdict(source: string, payload?: string | null, maxSteps?: number): string {
  const { outcome, reason } = evaluate(source, payload, maxSteps);
  return reason ?? outcome.replace("_", " ");
}
