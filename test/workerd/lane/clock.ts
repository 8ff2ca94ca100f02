import type { LaneDeps } from "../../../src/app/lane/lane-state.ts";

const STEP_MS = 10;
/** What waits for the clock or for others: the clock must go on meanwhile. */
const NOT_WORK = ["sleep", "within", "background", "pumpAgain"];

export interface Clock {
  now(): number;
  /** A lane's deps under this clock. */
  of(deps: LaneDeps): LaneDeps;
  /** Goes on by this much, and does this at each step. */
  run(ms: number, act?: () => unknown): Promise<void>;
}

/** A clock that stands while the ledger or a receiver is at work, so that what is timed by it does not depend on how fast they are. */
export function createClock(startAt: number): Clock {
  let now = startAt;
  const working = new Set<Promise<unknown>>();
  const sleepers = new Set<{ until: number; wake: () => void }>();

  const counted = (work: (...input: any[]) => unknown) => (input: any[]) => {
    const result = work(...input);
    if (!(result instanceof Promise)) return result;
    working.add(result);
    return result.finally(() => working.delete(result));
  };

  async function settle(): Promise<void> {
    do await scheduler.wait(0);
    while (working.size > 0);
  }

  return {
    now: () => now,
    of: (deps) => ({
      ...(Object.fromEntries(
        Object.entries(deps).map(([name, dep]) => {
          if (typeof dep !== "function" || NOT_WORK.includes(name)) return [name, dep];
          const work = counted(dep);
          return [name, (...input: unknown[]) => work(input)];
        }),
      ) as unknown as LaneDeps),
      now: () => now,
      sleep: (ms) => new Promise((wake) => sleepers.add({ until: now + ms, wake: () => wake() })),
    }),
    async run(ms, act = () => {}) {
      for (const endsAt = now + ms; now < endsAt;) {
        void act();
        await settle();
        now += STEP_MS;
        for (const sleeper of sleepers) {
          if (sleeper.until > now) continue;
          sleepers.delete(sleeper);
          sleeper.wake();
        }
      }
      await settle();
    },
  };
}
