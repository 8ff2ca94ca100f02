import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiCaller } from "../../../scripts/api-caller.ts";
import { measure, startCountedRelay, type CountedRelay, type CostPlace } from "../cost/counted-relay.ts";
import type { CountsAnswer } from "../cost/counting/counts.ts";
import { SCENARIOS } from "../cost/scenarios.ts";
import { createTenant, startRelay, subscribe } from "../support/relay.ts";
import type { BenchContext, Row, Section } from "../support/section.ts";
import { round } from "../support/table.ts";
import { CALLS } from "./calls.ts";
import { fillLedger } from "./fill.ts";
import { measureTimes } from "./times.ts";

interface Ledger {
  name: string;
  events: number;
  backlog: number;
  endpoints: number;
  tenants: number;
}

/** Cost hardly differs from event to event, so a few are enough to see what grows. */
const EVENTS = 100;
const ALONE = 10;
/** Ticks of the watchdog as they come by themselves. */
const WATCHED_SECONDS = 65;
const WATCHED_SECONDS_QUICK = 10;
const SHOWN_STATEMENTS = 12;
/** A seek may touch a few neighbours more, as its key happens to lie. */
const GROWN_BY = 4;

/** By statement, and who made it. */
type Reads = Map<string, { calls: number; rowsRead: number }>;

/** Costs and times over a ledger with a past, beside those over an empty one: what differs between columns grows. */
export const growth: Section = (context) => measureLedgers(context, ledgersOf(context));

async function measureLedgers(context: BenchContext, ledgers: Ledger[]): Promise<Row[]> {
  const columns = new Map<string, Map<string, number | null>>();
  let empty: Reads | null = null;
  for (const ledger of ledgers) {
    const stateDir = mkdtempSync(join(tmpdir(), "hooklane-bench-"));
    try {
      const reads: Reads = new Map();
      columns.set(ledger.name, await measureLedger(context, ledger, stateDir, reads));
      if (empty) noteGrowing(context, ledger.name, reads, empty);
      else empty = reads;
    } finally {
      rmSync(stateDir, { recursive: true, force: true });
    }
  }
  const figures = [...new Set([...columns.values()].flatMap((column) => [...column.keys()]))];
  return figures.map((figure): Row => {
    return { figure, ...Object.fromEntries([...columns].map(([name, column]) => [name, column.get(figure) ?? null])) };
  });
}

function ledgersOf({ quick }: BenchContext): Ledger[] {
  const [events, backlog, many] = quick ? [20_000, 2_000, 100] : [1_000_000, 100_000, 1_000];
  const empty = { name: "empty", events: 0, backlog: 0, endpoints: 0, tenants: 1 };
  const shape = (endpoints: number, tenants: number): Ledger => {
    return { name: `${endpoints} ep, ${tenants} ten`, events, backlog, endpoints, tenants };
  };
  return quick ? [empty, shape(many, 10)] : [empty, shape(10, 1), shape(many * 5, 1), shape(many * 5, many)];
}

async function measureLedger(context: BenchContext, ledger: Ledger, stateDir: string, reads: Reads) {
  const column = new Map<string, number | null>();
  const first = await startRelay({ stateDir });
  const tenant = await createTenant(first, "growth");
  // So that there is a policy to copy.
  await subscribe(tenant, { url: "http://127.0.0.1:9/", type: "nothing" });
  await first.stop();
  if (ledger.events > 0) {
    const filled = fillLedger({ stateDir, tenantId: tenant.tenantId, ...ledger });
    const bytes = Math.round(filled.bytes / (ledger.events + ledger.backlog));
    context.note(`${ledger.name}: filled in ${round(filled.seconds, 0)} s, ${bytes} bytes an event.`);
  }

  const counted = await startCountedRelay(stateDir);
  try {
    const { key } = tenant;
    await measureCosts({ ...counted, tenant: { key, call: createApiCaller(counted.relay.url, key) } }, column, reads);
    // With nothing open there is no tick but cron's.
    if (ledger.backlog > 0) await measureWatchdog(counted, context, column, reads);
  } finally {
    await counted.stop();
  }
  await measureTimes(context, stateDir, tenant.key, column);
  return column;
}

async function measureCosts(place: CostPlace, column: Map<string, number | null>, reads: Reads): Promise<void> {
  for (const { name, prepare, isAlone, deliveries } of SCENARIOS) {
    const events = isAlone ? ALONE : Math.ceil(EVENTS / (deliveries ?? 1));
    const { counts, answer } = await measure(place, await prepare(place, { bytes: 1_000, events }));
    addReads(reads, answer);
    column.set(`${name}: rows written`, round(counts.rowsWritten / events, 2));
    column.set(`${name}: rows read`, round(counts.rowsRead / events, 1));
    column.set(`${name}: trips`, round(counts.ledgerTrips / events, 2));
  }
  for (const { name, prepare } of CALLS) {
    const { counts, answer } = await measure(place, await prepare(place));
    addReads(reads, answer);
    column.set(`${name}: rows read`, counts.rowsRead);
  }
}

/** What nobody's event causes: ticks as they come, while only the backlog is there. */
async function measureWatchdog(
  counted: CountedRelay,
  context: BenchContext,
  column: Map<string, number | null>,
  reads: Reads,
): Promise<void> {
  const seconds = context.quick ? WATCHED_SECONDS_QUICK : WATCHED_SECONDS;
  await counted.reset();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  const answer = await counted.read();
  addReads(reads, answer);
  const { watchdog, lane, cron } = answer.counts;
  const aMinute = (n: number) => round((n * 60) / seconds, 0);
  column.set("left alone, a minute: ticks", aMinute(watchdog.invocations));
  column.set("left alone, a minute: rows read", aMinute(watchdog.rowsRead + lane.rowsRead));
  column.set(
    "left alone, a minute: rows written",
    aMinute(watchdog.rowsWritten + watchdog.objectRowsWritten + lane.objectRowsWritten),
  );
  column.set("left alone, a minute: object calls", aMinute(watchdog.objectCalls + cron.objectCalls));
}

/** Statements that read more a call than over the empty ledger, by how much more. */
function noteGrowing(context: BenchContext, name: string, seen: Reads, empty: Reads): void {
  const growing = [...seen]
    .map(([sql, { calls, rowsRead }]) => {
      const before = empty.get(sql);
      return { sql, each: rowsRead / calls, before: before ? before.rowsRead / before.calls : 0 };
    })
    .filter(({ each, before }) => each > before + GROWN_BY)
    .toSorted((a, b) => b.each - b.before - (a.each - a.before))
    .slice(0, SHOWN_STATEMENTS);
  for (const { sql, each, before } of growing) {
    context.note(`${name}: ${round(each)} rows read a call, not ${round(before)}: ${sql.slice(0, 200)}`);
  }
}

function addReads(reads: Reads, { statements }: CountsAnswer): void {
  for (const { origin, sql, calls, rowsRead } of statements) {
    const key = `${origin}: ${sql}`;
    const known = reads.get(key) ?? { calls: 0, rowsRead: 0 };
    reads.set(key, { calls: known.calls + calls, rowsRead: known.rowsRead + rowsRead });
  }
}
