import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { runHistory, STEPS, type Run } from "./history.ts";
import { KINDS, MEASURED, OTHERWISE } from "./provided.ts";
import { describeFailure, shrink } from "./shrink.ts";
import { writeSteps } from "./steps.ts";

const DEFAULT_HISTORIES = 2_000;
const SHARDS = 2;
const PER_TEST = 250;
const MAX_TEST_MS = 3_600_000;
const COUNTED = ["histories", ...MEASURED];

const histories = Number(process.env["HOOKLANE_HISTORIES"] ?? DEFAULT_HISTORIES);
/** Where a run of many goes on that is made in parts. */
const firstSeed = Number(process.env["HOOKLANE_FIRST_SEED"] ?? 1);
/** Runs this one alone, with the end of its trace; of its steps only those given. */
const single = process.env["HOOKLANE_SEED"];

/** One of the files that share the seeds one after the other: each process runs its own part. */
export function runShard(shard: number): void {
  const seeds = single === undefined ? Array.from({ length: histories }, (_, n) => firstSeed + n) : [Number(single)];
  const own = seeds.filter((_, n) => n % SHARDS === shard);
  const counts = Object.fromEntries([...COUNTED, ...Object.keys(KINDS), OTHERWISE].map((name) => [name, 0]));
  for (let from = 0; from < own.length; from += PER_TEST) {
    const part = own.slice(from, from + PER_TEST);
    const name = part.length === 1 ? `history ${part[0]}` : `histories ${part[0]} to ${part.at(-1)}`;
    test(`${name} keep what is promised`, { timeout: MAX_TEST_MS }, async () => {
      for (const seed of part) {
        const run = await runHistory(seed, stepsOf(seed));
        add(counts, run);
        if (run.violations.length === 0 && seed !== part.at(-1)) continue;
        writeFileSync(join(inject("totals"), `${shard}.json`), JSON.stringify(counts));
        if (run.violations.length > 0) expect.fail(`\n${describeFailure(await shrink(run))}\n`);
      }
    });
  }
  if (own.length === 0) test.skip("another file runs it", () => {});
}

function stepsOf(seed: number) {
  const given = process.env["HOOKLANE_STEPS"];
  if (given === undefined) return {};
  const numbers = new Set(given.split(",").filter(Boolean).map(Number));
  return { steps: writeSteps(seed, STEPS).filter(({ n }) => numbers.has(n)) };
}

function add(counts: Record<string, number>, run: Run): void {
  counts["histories"]!++;
  for (const name of MEASURED) counts[name]! += run.counts[name];
  const [first] = run.violations;
  if (first === undefined) return;
  const kind = Object.entries(KINDS).find(([, beginnings]) => beginnings.some((words) => first.startsWith(words)));
  counts[kind?.[0] ?? OTHERWISE]!++;
}
