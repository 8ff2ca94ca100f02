import type { Chance } from "./random.ts";

/** What waits at the border of a process: a store, a queue, an object, a request; or an answer on its way back. */
export type OpKind = "d1" | "r2" | "queue" | "object" | "send" | "answer";

/** What becomes of a call. Refused: nothing happened. Lost: it happened, and the caller is told that it did not. */
export type Fate =
  | "done"
  | "refused"
  | "answer lost"
  | "late"
  | "answer late"
  | "answer past its lease"
  | "crash before"
  | "crash after";

/** How much goes wrong. */
export interface Weather {
  name: string;
  fateOf(kind: OpKind, chance: Chance, caller: object): Fate;
  delayMs(chance: Chance): number;
  /** Whether so much may go wrong that a claim of a living process is left to its lease. */
  leavesClaims: boolean;
  /** Of a doorbell. A report of an attempt is never lost: queues keep what they took. */
  ofMessage(chance: Chance): "arrives" | "lost" | "doubled" | "late";
}

export const CALM: Weather = {
  name: "calm",
  fateOf: () => "done",
  delayMs: () => 1,
  leavesClaims: false,
  ofMessage: () => "arrives",
};

/** No call of a store takes longer: its caller would have given it up. */
const delayMs = (chance: Chance) => {
  const luck = chance.next();
  if (luck < 0.7) return chance.int(20, 900);
  return luck < 0.95 ? chance.int(900, 5_000) : chance.int(5_000, 11_000);
};

const ofMessage: Weather["ofMessage"] = (chance) => {
  const luck = chance.next();
  if (luck < 0.05) return "lost";
  if (luck < 0.12) return "doubled";
  return luck < 0.2 ? "late" : "arrives";
};

/** How often, among what goes wrong. Only the answer of a request may take longer than anybody waits for it. */
const FATES: readonly (readonly [number, Fate])[] = [
  [3, "refused"],
  [3, "answer lost"],
  [2, "late"],
  [2, "answer late"],
  [0.6, "crash before"],
  [0.6, "crash after"],
];

const FATES_OF_REQUESTS: typeof FATES = [...FATES, [3, "answer past its lease"]];

const badWeather = (name: string, share: number): Weather => ({
  name,
  delayMs,
  ofMessage,
  leavesClaims: true,
  fateOf: (kind, chance) =>
    chance.next() < share ? chance.weighted(kind === "send" ? FATES_OF_REQUESTS : FATES) : "done",
});

/** Doorbells are never sure. */
const FAIR: Weather = { ...CALM, name: "fair", ofMessage };

/** What a receiver said is heard of when its delivery has been attempted again: a stale token, and perhaps a late success. */
const SLUGGISH: Weather = {
  ...FAIR,
  name: "sluggish",
  leavesClaims: true,
  fateOf: (kind, chance) => (kind === "send" && chance.next() < 0.15 ? "answer past its lease" : "done"),
};

const SPARED = 8;

/** The ledger does what it is told, and its answer is lost; what the same process asks next is answered. */
function createForgetful(): Weather {
  const spared = new WeakMap<object, number>();
  return {
    ...FAIR,
    name: "forgetful",
    fateOf(kind, chance, caller) {
      const left = spared.get(caller) ?? 0;
      const isLost = kind === "d1" && left === 0 && chance.next() < 0.1;
      if (kind === "d1") spared.set(caller, isLost ? SPARED : Math.max(0, left - 1));
      return isLost ? "answer lost" : "done";
    },
  };
}

export const WEATHERS: readonly (() => Weather)[] = [
  () => FAIR,
  createForgetful,
  () => SLUGGISH,
  () => badWeather("breezy", 0.015),
  () => badWeather("stormy", 0.06),
];
