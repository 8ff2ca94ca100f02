import { runHistory, type Run } from "./history.ts";
import type { Sqlite } from "./sqlite.ts";
import type { Step } from "./steps.ts";
import type { Ledger } from "./stores.ts";

const MAX_RUNS = 400;

/** The first words of a violation say of what kind it is; the rest names who. */
const kindOf = ({ violations }: Run) => violations[0]?.split(":")[0];

/**
 * Fewer steps that break the same promise: parts of the history are left out, smaller and smaller ones, as long as it still
 * fails (delta debugging).
 */
export async function shrink(failed: Run, over: { ledgerOf?: (db: Sqlite) => Ledger } = {}): Promise<Run> {
  let smallest = failed;
  let runsLeft = MAX_RUNS;
  const fails = async (steps: Step[]) => {
    runsLeft--;
    const run = await runHistory(failed.seed, { ...over, steps });
    if (kindOf(run) !== kindOf(failed)) return false;
    smallest = run;
    return true;
  };
  const { failedAt } = failed;
  if (failedAt !== null) await fails(failed.steps.filter(({ n }) => n <= failedAt));
  for (let size = Math.ceil(smallest.steps.length / 2); size >= 1;) {
    const { length } = smallest.steps;
    for (let from = 0; from < smallest.steps.length;) {
      if (runsLeft <= 0 || !(await fails(smallest.steps.toSpliced(from, size)))) from += size;
    }
    if (smallest.steps.length === length) size = size === 1 || runsLeft <= 0 ? 0 : Math.ceil(size / 2);
  }
  return runHistory(failed.seed, { ...over, steps: smallest.steps, isTraced: true });
}

/** What somebody needs who is to mend it. */
export function describeFailure({ seed, steps, violations, trace }: Run): string {
  const numbers = steps.map(({ n }) => n).join(",");
  return [
    `seed ${seed}: ${violations.join("\n  ")}`,
    `steps: ${steps.map(({ n, act }) => `${n} ${act}`).join(" · ") || "none"}`,
    "the end of it:",
    ...trace.slice(-60).map((line) => `  ${line.slice(0, 240)}`),
    `replay: HOOKLANE_SEED=${seed} HOOKLANE_STEPS=${numbers} npx vitest run --project histories`,
  ].join("\n");
}
