/**
 * `npm run bench`: what the relay of `npm start` does on this machine, in figures. Nothing is asserted. `--quick` takes two
 * minutes instead of thirty, `--only=NAME,…` takes some of the sections, `--profile` looks where the
 * time goes instead. Prints tables, and writes `bench-results.json`.
 */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { bare } from "./bare.ts";
import { floor } from "./floor.ts";
import { isolation } from "./isolation.ts";
import { latency } from "./latency.ts";
import { profile } from "./profile.ts";
import { recovery } from "./recovery.ts";
import { strict } from "./strict.ts";
import { cost } from "./cost/cost.ts";
import { statements } from "./cost/statements.ts";
import { growth } from "./growth/growth.ts";
import { describeMachine } from "./support/machine.ts";
import type { Row, Section } from "./support/section.ts";
import { formatTable } from "./support/table.ts";
import { throughput } from "./throughput.ts";

const RESULTS = join(resolve(import.meta.dirname, "../.."), "bench-results.json");

/** In this order: what others give ratios to comes first. */
const all: Record<string, Section> = {
  floor,
  bare,
  cost,
  statements,
  throughput,
  latency,
  strict,
  recovery,
  isolation,
  growth,
};

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    profile: { type: "boolean", default: false },
  },
});
/** A profile slows down what it looks at, so there are no figures beside it. */
const sections: Record<string, Section> = values.profile ? { profile } : all;
/** Those that take a ledger of a million events, or say the same whatever the numbers: where time is short they are asked for. */
const unhurried = ["statements", "growth"];
const only = values.only.split(",").filter((name) => name !== "");
const unknown = only.filter((name) => !Object.hasOwn(sections, name));
if (unknown.length > 0) {
  console.error(`No section ${unknown.join(", ")}. There are: ${Object.keys(sections).join(", ")}`);
  process.exit(1);
}

// The relays are groups of processes of their own, which end with this one's `exit`.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

interface Result {
  seconds: number;
  /** Processes that wanted a processor when it began: more than none of them is somebody else's. */
  loadBefore: number;
  rows: Row[];
  notes: string[];
  errors: Record<string, number>;
}

const startedAt = Date.now();
const results: Record<string, Result> = {};
const header = { date: new Date(startedAt).toISOString(), quick: values.quick, ...describeMachine() };
console.log(
  `${Object.entries(header)
    .map(([name, value]) => `${name} ${value}`)
    .join(" · ")}\n`,
);

for (const [name, section] of Object.entries(sections)) {
  if (only.length > 0 ? !only.includes(name) : values.quick && unhurried.includes(name)) continue;
  const from = Date.now();
  const result: Result = { seconds: 0, loadBefore: loadavg()[0]!, rows: [], notes: [], errors: {} };
  results[name] = result;
  try {
    result.rows = await section({
      quick: values.quick,
      note: (line) => result.notes.push(line),
      countErrors(what, count) {
        if (count > 0) result.errors[what] = (result.errors[what] ?? 0) + count;
      },
    });
  } catch (error) {
    // The others have their figures still.
    console.error(error);
    result.errors[String(error)] = 1;
    process.exitCode = 1;
  }
  result.seconds = Math.round((Date.now() - from) / 1_000);
  const errors = Object.entries(result.errors).map(([what, count]) => `! ${count} × ${what}`);
  const load = `load before ${result.loadBefore.toFixed(1)}`;
  console.log(
    [`${name} (${result.seconds} s, ${load})`, formatTable(result.rows), ...result.notes, ...errors, ""].join("\n"),
  );
  // After each, so that whoever stops it keeps what there is.
  writeFileSync(RESULTS, `${JSON.stringify({ ...header, sections: results }, null, 2)}\n`);
}
console.log(`${Math.round((Date.now() - startedAt) / 1_000)} s in all. Rows are in ${RESULTS}`);
