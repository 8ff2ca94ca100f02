/**
 * `npm run bench`: what the relay of `npm start` does on this machine, in figures. Nothing is asserted. `--quick` takes two
 * minutes instead of thirty, `--only=NAME,…` takes some of the sections. Prints tables, and writes `bench-results.json`.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { cost } from "./cost/cost.ts";
import { statements } from "./cost/statements.ts";
import { growth } from "./growth/growth.ts";
import { describeMachine } from "./support/machine.ts";
import type { Row, Section } from "./support/section.ts";
import { formatTable } from "./support/table.ts";
import { throughput } from "./throughput.ts";

const RESULTS = join(resolve(import.meta.dirname, "../.."), "bench-results.json");

/** In this order: what others give ratios to comes first. */
const sections: Record<string, Section> = { throughput, cost, statements, growth };

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, only: { type: "string", default: "" } },
});
const only = values.only.split(",").filter((name) => name !== "");
const unknown = only.filter((name) => !Object.hasOwn(sections, name));
if (unknown.length > 0) {
  console.error(`No section ${unknown.join(", ")}. There are: ${Object.keys(sections).join(", ")}`);
  process.exit(1);
}

interface Result {
  seconds: number;
  rows: Row[];
  notes: string[];
  errors: Record<string, number>;
}

const startedAt = Date.now();
const results: Record<string, Result> = {};
const shared = new Map<string, number>();
const header = { date: new Date(startedAt).toISOString(), quick: values.quick, ...describeMachine() };
console.log(
  `${Object.entries(header)
    .map(([name, value]) => `${name} ${value}`)
    .join(" · ")}\n`,
);

for (const [name, section] of Object.entries(sections)) {
  if (only.length > 0 && !only.includes(name)) continue;
  const from = Date.now();
  const result: Result = { seconds: 0, rows: [], notes: [], errors: {} };
  results[name] = result;
  try {
    result.rows = await section({
      quick: values.quick,
      shared,
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
  console.log([`${name} (${result.seconds} s)`, formatTable(result.rows), ...result.notes, ...errors, ""].join("\n"));
  // After each, so that whoever stops it keeps what there is.
  writeFileSync(RESULTS, `${JSON.stringify({ ...header, sections: results }, null, 2)}\n`);
}
console.log(`${Math.round((Date.now() - startedAt) / 1_000)} s in all. Rows are in ${RESULTS}`);
