import { compilePattern } from "./event-type.ts";
import {
  reportType,
  type AskingSubscription,
  type KnownVersion,
  type RecentEvents,
  type VersionRow,
} from "./version-rows.ts";

export interface VersionReport {
  /** Types by name, versions lowest first; what matches no known type last. */
  rows: VersionRow[];
  /** How many types are known, and how many of them this is about: those with most recent events. */
  types: number;
  typesLookedAt: number;
}

/** Each is matched against every pattern with a wildcard. */
export const MAX_REPORTED_TYPES = 500;
/** Types and who matches them, after which no further type is looked at. */
export const MAX_REPORTED_PAIRS = 100_000;

/**
 * Which versions there are of which types, and which subscriptions get them today. A type is known when it is registered, has
 * recent events or is the whole pattern of a subscription. What a subscription without a pin gets is what the newest recent event
 * carries, or without one the newest registered version.
 * @param subscriptions oldest first
 */
export function reportVersions(
  registered: readonly KnownVersion[],
  recent: readonly RecentEvents[],
  subscriptions: readonly AskingSubscription[],
  only: { eventType: string | null; schemaVersion: number | null },
): VersionReport {
  const registeredOf = Map.groupBy(registered, ({ name }) => name);
  const recentOf = Map.groupBy(recent, ({ type }) => type);
  const isWildcard = ({ eventTypePattern }: AskingSubscription) => eventTypePattern.includes("*");
  const exactOf = Map.groupBy(
    subscriptions.filter((subscription) => !isWildcard(subscription)),
    ({ eventTypePattern }) => eventTypePattern,
  );
  const place = new Map(subscriptions.map(({ id }, i) => [id, i]));
  const wildcards = subscriptions.filter(isWildcard);
  // Many subscriptions have few patterns: each is tried once on a type.
  const patterns = [...Map.groupBy(wildcards, ({ eventTypePattern }) => eventTypePattern)].map(([pattern, of]) => ({
    matches: compilePattern(pattern),
    of,
  }));
  const countOf = (type: string) => (recentOf.get(type) ?? []).reduce((sum, { count }) => sum + count, 0);
  const known =
    only.eventType === null
      ? [...new Set([...recentOf.keys(), ...registeredOf.keys(), ...exactOf.keys()])]
      : [only.eventType];
  const types = known
    .map((type) => ({ type, count: countOf(type) }))
    .toSorted((a, b) => b.count - a.count || compareText(a.type, b.type))
    .slice(0, MAX_REPORTED_TYPES)
    .map(({ type }) => type);
  const matched = new Map<string, AskingSubscription[]>();
  let pairs = 0;
  for (const type of types) {
    if (pairs > MAX_REPORTED_PAIRS) break;
    const asking = [
      ...(exactOf.get(type) ?? []),
      ...patterns.flatMap(({ matches, of }) => (matches(type) ? of : [])),
    ].toSorted((a, b) => place.get(a.id)! - place.get(b.id)!);
    matched.set(type, asking);
    pairs += asking.length;
  }
  const rows = [...matched]
    .toSorted(([a], [b]) => compareText(a, b))
    .flatMap(([type, asking]) => reportType(type, registeredOf.get(type) ?? [], recentOf.get(type) ?? [], asking));
  // Where types were left out nobody knows who matches none.
  const seen = new Set([...matched.values()].flat());
  const unmatched =
    only.eventType === null && matched.size === known.length ? wildcards.filter((one) => !seen.has(one)) : [];
  return {
    rows: [...rows, ...reportUnmatched(unmatched)].filter(
      ({ schemaVersion }) => only.schemaVersion === null || schemaVersion === only.schemaVersion,
    ),
    types: known.length,
    typesLookedAt: matched.size,
  };
}

function reportUnmatched(subscriptions: AskingSubscription[]): VersionRow[] {
  const byVersion = Map.groupBy(subscriptions, ({ schemaVersion }) => schemaVersion);
  return [...byVersion]
    .toSorted(([a], [b]) => (a ?? Infinity) - (b ?? Infinity))
    .map(([schemaVersion, asking]) => ({
      eventType: null,
      schemaVersion,
      isRegistered: false,
      retiredAt: null,
      events: 0,
      lastEventAt: null,
      subscriptions: asking.map((subscription) => ({
        subscription,
        decidedBy: schemaVersion === null ? null : ("pin" as const),
        withheld: null,
      })),
    }));
}

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
