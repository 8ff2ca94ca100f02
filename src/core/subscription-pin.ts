import type { EventType, Subscription } from "./model.ts";

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

/** Whether nothing could come of a subscription: it asks for a version of its one type that is retired. */
export function isPinRetired(
  { schemaVersion }: Pick<Subscription, "schemaVersion">,
  eventType: EventType | null,
): boolean {
  const pinned = eventType?.versions.find((version) => version.schemaVersion === schemaVersion);
  return pinned !== undefined && pinned.retiredAt !== null;
}
