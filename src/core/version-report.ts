import { chooseVersion, isBetter, type VersionChoice, type VersionFault } from "./choose-version.ts";
import { compilePattern } from "./event-type.ts";

/** A version of a type as it is registered. */
export interface KnownVersion {
  name: string;
  requiredScope: string | null;
  schemaVersion: number;
  /** Ms since 1970 UTC. */
  retiredAt: number | null;
}

/** Recent events of one type that carry the same versions. */
export interface RecentEvents {
  type: string;
  versions: number[];
  count: number;
  /** The newest of them was relayed then. */
  lastAt: number;
  /** Its id, which tells the newest of all. */
  lastId: string;
}

/** A living, enabled subscription of a living endpoint. */
export interface AskingSubscription {
  id: string;
  endpointId: string;
  /** Since when nothing is sent there, though it matches; null while it is enabled. */
  endpointDisabledAt: number | null;
  eventTypePattern: string;
  isFiltered: boolean;
  entitlementScope: string[];
  /** The version it is pinned to; null for the newest. */
  schemaVersion: number | null;
}

/** What one subscription gets of one type. */
export interface SubscriptionVersion {
  subscription: AskingSubscription;
  /** What told: its pin, the newest recent event of the type, or what is registered of it. Null where nothing does. */
  decidedBy: "pin" | "recent_event" | "registered" | null;
  /** Why it does not get the version that it asks for; null where it does. */
  withheld: VersionFault | "other_subscription" | null;
}

/** A version of a type, and who asks for it. */
export interface VersionRow {
  /** Null of subscriptions that match no type that is known. */
  eventType: string | null;
  /** Null where nothing says which they get. */
  schemaVersion: number | null;
  isRegistered: boolean;
  retiredAt: number | null;
  /** Recent events that carry it. */
  events: number;
  lastEventAt: number | null;
  /** Oldest first. */
  subscriptions: SubscriptionVersion[];
}

export interface VersionReport {
  /** Types by name, versions lowest first; what matches no known type last. */
  rows: VersionRow[];
  /** How many types are known. */
  types: number;
}

/** Each is matched against every wildcard. Those with most recent events come first. */
export const MAX_REPORTED_TYPES = 500;

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
  const wildcards = subscriptions
    .filter(isWildcard)
    .map((subscription) => ({ subscription, matches: compilePattern(subscription.eventTypePattern) }));
  const countOf = (type: string) => (recentOf.get(type) ?? []).reduce((sum, { count }) => sum + count, 0);
  const known =
    only.eventType === null
      ? [...new Set([...recentOf.keys(), ...registeredOf.keys(), ...exactOf.keys()])]
      : [only.eventType];
  const types = known
    .map((type) => ({ type, count: countOf(type) }))
    .toSorted((a, b) => b.count - a.count || compareText(a.type, b.type))
    .slice(0, MAX_REPORTED_TYPES)
    .map(({ type }) => type)
    .toSorted(compareText);
  const matched = new Set<string>();
  const rows = types.flatMap((type) => {
    const asking = [
      ...(exactOf.get(type) ?? []),
      ...wildcards.flatMap(({ subscription, matches }) => (matches(type) ? [subscription] : [])),
    ].toSorted((a, b) => place.get(a.id)! - place.get(b.id)!);
    for (const { id } of asking) matched.add(id);
    return reportType(type, registeredOf.get(type) ?? [], recentOf.get(type) ?? [], asking);
  });
  const unmatched =
    only.eventType === null
      ? wildcards.map(({ subscription }) => subscription).filter(({ id }) => !matched.has(id))
      : [];
  return {
    rows: [...rows, ...reportUnmatched(unmatched)].filter(
      ({ schemaVersion }) => only.schemaVersion === null || schemaVersion === only.schemaVersion,
    ),
    types: known.length,
  };
}

function reportType(
  type: string,
  registered: KnownVersion[],
  recent: RecentEvents[],
  asking: AskingSubscription[],
): VersionRow[] {
  const requiredScope = registered[0]?.requiredScope ?? null;
  const retired = new Map(registered.map(({ schemaVersion, retiredAt }) => [schemaVersion, retiredAt]));
  const isRetired = (version: number) => (retired.get(version) ?? null) !== null;
  const newest = recent.reduce<RecentEvents | null>((last, of) => (last && last.lastId > of.lastId ? last : of), null);
  const candidates = asking
    .filter(({ entitlementScope }) => requiredScope === null || entitlementScope.includes(requiredScope))
    .map((subscription) => ({
      subscription,
      ...decide(subscription.schemaVersion, newest, [...retired.keys()], isRetired),
    }));
  const best = bestUnfiltered(candidates);
  const decided = candidates.map(({ subscription, decidedBy, choice }, age) => {
    const winner = best.get(subscription.endpointId);
    const isPassedOver = winner !== undefined && choice !== null && isBeaten({ choice, age }, winner);
    return {
      version: choice?.schemaVersion ?? null,
      row: {
        subscription,
        decidedBy,
        withheld: choice?.versionFault ?? (isPassedOver ? ("other_subscription" as const) : null),
      },
    };
  });
  const versions = new Set<number | null>([
    ...retired.keys(),
    ...recent.flatMap((of) => of.versions),
    ...decided.map(({ version }) => version),
  ]);
  return [...versions]
    .toSorted((a, b) => (a ?? Infinity) - (b ?? Infinity))
    .map((schemaVersion) => {
      const carrying = recent.filter((of) => schemaVersion !== null && of.versions.includes(schemaVersion));
      return {
        eventType: type,
        schemaVersion,
        isRegistered: schemaVersion !== null && retired.has(schemaVersion),
        retiredAt: (schemaVersion !== null && retired.get(schemaVersion)) || null,
        events: carrying.reduce((sum, { count }) => sum + count, 0),
        lastEventAt: carrying.length === 0 ? null : Math.max(...carrying.map(({ lastAt }) => lastAt)),
        subscriptions: decided.filter(({ version }) => version === schemaVersion).map(({ row }) => row),
      };
    });
}

interface Decided {
  decidedBy: SubscriptionVersion["decidedBy"];
  choice: VersionChoice | null;
}

/** Without a recent event a pin is taken at its word: nothing says that it would not be had. */
function decide(
  pin: number | null,
  newest: RecentEvents | null,
  registered: number[],
  isRetired: (version: number) => boolean,
): Decided {
  if (pin !== null) {
    return { decidedBy: "pin", choice: chooseVersion(pin, { versions: newest?.versions ?? [pin], isRetired }) };
  }
  if (newest)
    return { decidedBy: "recent_event", choice: chooseVersion(null, { versions: newest.versions, isRetired }) };
  if (registered.length === 0) return { decidedBy: null, choice: null };
  return { decidedBy: "registered", choice: chooseVersion(null, { versions: registered, isRetired }) };
}

interface Candidate {
  choice: VersionChoice;
  /** Its place among those that match, oldest first. */
  age: number;
}

/** Of each endpoint the subscription that wins over all others that take every event. */
function bestUnfiltered(candidates: { subscription: AskingSubscription; choice: VersionChoice | null }[]) {
  const best = new Map<string, Candidate>();
  for (const [age, { subscription, choice }] of candidates.entries()) {
    if (subscription.isFiltered || choice === null) continue;
    const older = best.get(subscription.endpointId);
    if (!older || isBetter(choice, older.choice)) best.set(subscription.endpointId, { choice, age });
  }
  return best;
}

/** Whether the endpoint gets, of every event of the type, what the winner asks for rather than this: as `chooseAll` of a publish. */
function isBeaten(one: Candidate, winner: Candidate): boolean {
  if (one.age === winner.age) return false;
  return winner.age < one.age ? !isBetter(one.choice, winner.choice) : isBetter(winner.choice, one.choice);
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
