import { chooseVersion, isBetter, type VersionChoice, type VersionFault } from "./choose-version.ts";

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

/**
 * The versions of one type, lowest first: those that are registered, that recent events carry, and that somebody asks for.
 * @param asking who matches the type, oldest first
 */
export function reportType(
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
