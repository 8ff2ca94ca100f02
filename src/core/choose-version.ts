/** Why nobody gets the version that a subscription asks for. */
export type VersionFault = "version_not_published" | "version_retired";

/** What a subscription gets of an event; with a fault the version that it asks for and does not get. */
export interface VersionChoice {
  schemaVersion: number;
  versionFault: VersionFault | null;
}

/** What an event carries, and what of its type is retired. */
export interface CarriedVersions {
  /** At least one. */
  versions: readonly number[];
  isRetired(schemaVersion: number): boolean;
}

/**
 * The version for one subscription (contract §7): the one it is pinned to, or without a pin the newest that the event carries and
 * that is not retired. A pin to a retired version says so whether or not the event carries it: that is what is to be mended.
 */
export function chooseVersion(pin: number | null, { versions, isRetired }: CarriedVersions): VersionChoice {
  if (pin !== null) {
    if (isRetired(pin)) return { schemaVersion: pin, versionFault: "version_retired" };
    return { schemaVersion: pin, versionFault: versions.includes(pin) ? null : "version_not_published" };
  }
  const live = versions.filter((version) => !isRetired(version));
  if (live.length === 0) return { schemaVersion: Math.max(...versions), versionFault: "version_retired" };
  return { schemaVersion: Math.max(...live), versionFault: null };
}

/**
 * Whether an endpoint with two subscriptions gets what the younger of them does: a version rather than none, and the higher of
 * two.
 */
export function isBetter(younger: VersionChoice, older: VersionChoice): boolean {
  if (younger.versionFault !== null) return false;
  return older.versionFault !== null || younger.schemaVersion > older.schemaVersion;
}
