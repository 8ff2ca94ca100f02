import { createChance, type Chance } from "./random.ts";

/** One step of a history: what is done, and the chance it has for all that it leaves open. */
export interface Step {
  n: number;
  act: Act;
  /** How much happens before the next step; the rest waits, in the middle of whatever it is doing. */
  budget: number;
}

const ACTS = {
  publish: 11,
  batch: 5,
  "publish again": 4,
  behave: 7,
  "a moment": 9,
  seconds: 9,
  "next thing": 9,
  "half a minute": 3,
  "ten minutes": 0.6,
  "crash worker": 2.5,
  "crash lane": 3.5,
  "crash watchdog": 1.5,
  deploy: 2,
  pause: 2.5,
  resume: 3.5,
  disable: 1,
  enable: 3.5,
  "change mode": 4,
  "change limits": 4,
  "change settings": 2.5,
  "move lane": 2,
  rotate: 1.5,
  retry: 3,
  replay: 3.5,
  skip: 4,
  cancel: 2.5,
  erase: 1,
  "retry all": 1,
  "bulk replay": 1.5,
  suspend: 0.8,
  activate: 1.5,
  "ledger away": 1.2,
  "payloads away": 0.7,
  "queues away": 1,
} as const;
export type Act = keyof typeof ACTS;

const WEIGHTED = Object.entries(ACTS).map(([act, weight]) => [weight, act as Act] as const);

/** The script of a history; each step's own chance follows from its number, so that it does the same without the others. */
export function writeSteps(seed: number, count: number): Step[] {
  const chance = createChance(seed, 0);
  return Array.from({ length: count }, (_, n) => {
    // First there has to be something.
    const act = n < 3 ? chance.pick(["publish", "batch"] as const) : chance.weighted(WEIGHTED);
    return { n, act, budget: budgetOf(chance) };
  });
}

function budgetOf(chance: Chance): number {
  const luck = chance.next();
  if (luck < 0.15) return 0;
  if (luck < 0.6) return chance.int(1, 12);
  return luck < 0.75 ? chance.int(13, 40) : Infinity;
}
