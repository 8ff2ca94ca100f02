import { createRandom } from "../../support/random.ts";

/** Reproducible chance. */
export interface Chance {
  /** Uniform in [0, 1). */
  next(): number;
  /** A whole number from `from` to `to`, both included. */
  int(from: number, to: number): number;
  pick<T>(list: readonly T[]): T;
  /** By weight. */
  weighted<T>(list: readonly (readonly [weight: number, item: T])[]): T;
}

/** One stream a list of numbers: streams of different lists have nothing in common. */
export function createChance(...seeds: number[]): Chance {
  const next = createRandom(
    seeds.reduce((mixed, seed) => Math.imul(mixed ^ (seed + 0x9e3779b9), 0x85ebca6b) ^ (mixed >>> 13), 0x2545f491),
  );
  return {
    next,
    int: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick: (list) => list[Math.floor(next() * list.length)]!,
    weighted(list) {
      let at = next() * list.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, item] of list) if ((at -= weight) < 0) return item;
      return list.at(-1)![1];
    },
  };
}
