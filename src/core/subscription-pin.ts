import type { EventType } from "./model.ts";

/**
 * The version that a subscription asks for which says nothing of one: of one type the newest that is registered and not retired,
 * 1 if it has none; of a wildcard null, the newest that an event carries. `no_live_version` when all there are are retired.
 */
export function defaultPin(eventTypePattern: string, eventType: EventType | null): number | null | "no_live_version" {
  if (eventTypePattern.includes("*")) return null;
  if (eventType === null) return 1;
  const live = eventType.versions.filter(({ retiredAt }) => retiredAt === null);
  return live.at(-1)?.schemaVersion ?? "no_live_version";
}

/** False of what is not registered, and of no version. */
export function isVersionRetired(eventType: EventType | null, schemaVersion: number | null): boolean {
  return eventType?.versions.some((one) => one.schemaVersion === schemaVersion && one.retiredAt !== null) ?? false;
}
