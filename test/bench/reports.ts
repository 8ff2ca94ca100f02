/**
 * `npm run bench:reports`: how long each report and each statement of docs/questions.sql takes, over a ledger of two million
 * deliveries and five million attempts, which it makes first (`--deliveries=N` for another size, `--state=DIR` to keep it, or to
 * take what is kept there). Each should stay below a second.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createApiCaller } from "../../scripts/api-caller.ts";
import { fillIn, parseQuestions } from "../support/questions.ts";
import { measure, startCountedRelay, type CountedRelay } from "./cost/counted-relay.ts";
import { SQL_PATH, type SqlAnswer } from "./cost/counting/counts.ts";
import { fillLedger } from "./growth/fill.ts";
import { REPORT_CALLS } from "./reports/calls.ts";
import { describeMachine } from "./support/machine.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { Row } from "./support/section.ts";
import { formatTable, round, summarise } from "./support/table.ts";

const QUESTIONS = resolve(import.meta.dirname, "../../docs/questions.sql");
const ENDPOINTS = 60;
const TENANTS = 2;
/** What waits besides, for each delivery that has a past: half of it in strict lanes. */
const BACKLOG = 0.04;
const RUNS = 7;

const { values } = parseArgs({
  options: { deliveries: { type: "string", default: "2000000" }, state: { type: "string" } },
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

interface Kept {
  tenantId: string;
  key: string;
}

console.log(
  Object.entries(describeMachine())
    .map(([name, value]) => `${name} ${value}`)
    .join(" · "),
);
const stateDir = values.state ?? mkdtempSync(join(tmpdir(), "hooklane-bench-"));
mkdirSync(stateDir, { recursive: true });
try {
  const note = join(stateDir, "bench-reports.json");
  if (!existsSync(note)) writeFileSync(note, JSON.stringify(await fill(stateDir)));
  const kept: Kept = JSON.parse(readFileSync(note, "utf8"));
  const times = await timeReports(stateDir, kept);
  const counted = await startCountedRelay(stateDir);
  try {
    const rows = [...(await countReports(counted, kept, times)), ...(await askQuestions(counted, kept))];
    console.log(formatTable(rows));
  } finally {
    await counted.stop();
  }
} finally {
  if (values.state === undefined) rmSync(stateDir, { recursive: true, force: true });
}

async function fill(stateDir: string): Promise<Kept> {
  const relay = await startRelay({ stateDir });
  const { tenantId, key, ...tenant } = await createTenant(relay, "reports");
  // So that there is a policy to copy.
  await subscribe(tenant, { url: "http://127.0.0.1:9/", type: "nothing" });
  await relay.stop();
  const past = Number(values.deliveries);
  // Few of them are another tenant's.
  const filled = fillLedger({
    stateDir,
    tenantId,
    tenants: TENANTS,
    endpoints: ENDPOINTS,
    events: 0,
    past,
    backlog: Math.floor(past * BACKLOG),
  });
  const { deliveries, attempts } = filled.past;
  console.log(
    `${deliveries} deliveries and ${attempts} attempts in ${round(filled.seconds, 0)} s, ${round(filled.bytes / 1e9, 2)} GB`,
  );
  return { tenantId, key };
}

/** By the relay of `npm start`: the first call after its start, and others. */
async function timeReports(stateDir: string, { key }: Kept): Promise<Row[]> {
  const relay = await startRelay({ stateDir });
  try {
    const call = createApiCaller(relay.url, key);
    // What is anybody's first request.
    await call("GET", "/v1/endpoints?limit=1");
    const rows: Row[] = [];
    for (const { name, path } of REPORT_CALLS) {
      const ms = await timesOf(async () => void (await call("GET", path)));
      const answer = await call("GET", path);
      rows.push({ asked: name, ...ms, rows: answer.data?.length ?? null, complete: answer.complete ?? null });
    }
    return rows;
  } finally {
    await relay.stop();
  }
}

async function countReports(counted: CountedRelay, { key }: Kept, rows: Row[]): Promise<Row[]> {
  const call = createApiCaller(counted.relay.url, key);
  const read: Row[] = [];
  for (const [k, { path }] of REPORT_CALLS.entries()) {
    const { counts } = await measure(counted, async () => void (await call("GET", path)));
    read.push({ ...rows[k]!, "rows read": counts.rowsRead });
  }
  return read;
}

async function askQuestions({ relay }: CountedRelay, { tenantId, key }: Kept): Promise<Row[]> {
  const rows: Row[] = [];
  const { data } = await createApiCaller(relay.url, key)("GET", "/v1/reports/dead-letters");
  const dlv: string = data[0].example_delivery_id;
  const values = {
    ten: tenantId,
    dlv,
    evt: `evt_${dlv.slice(4, 30)}`,
    ep: data[0].endpoint_id,
    sub: data[0].subscription_id,
  };
  for (const question of parseQuestions(readFileSync(QUESTIONS, "utf8"))) {
    const body = fillIn(question, values);
    let answer: SqlAnswer | null = null;
    const ms = await timesOf(async () => {
      const response = await fetch(relay.url + SQL_PATH, { method: "POST", body });
      if (!response.ok) throw new Error(`Question ${question.number}: ${await response.text()}`);
      answer = (await response.json()) as SqlAnswer;
    });
    const { rows: found, rowsRead } = answer!;
    rows.push({ asked: `SQL ${question.number}`, ...ms, rows: found, complete: null, "rows read": rowsRead });
  }
  return rows;
}

async function timesOf(act: () => Promise<void>): Promise<Row> {
  const ms: number[] = [];
  for (let n = 0; n <= RUNS; n++) {
    const from = performance.now();
    await act();
    ms.push(performance.now() - from);
  }
  const [first, ...others] = ms;
  const { p50, max } = summarise(others);
  return { "first, ms": round(first!, 0), "p50, ms": round(p50, 0), "max, ms": round(max, 0) };
}
