import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fillLedger } from "../growth/fill.ts";
import { createTenant, startRelay, subscribe } from "../support/relay.ts";
import type { BenchContext, Row, Section } from "../support/section.ts";
import { round } from "../support/table.ts";
import { measure, startCountedRelay, type CostPlace, type Measured } from "./counted-relay.ts";
import { addCounts } from "./counting/counts.ts";
import { dollarsPerMillion, PRICES_DATE } from "./prices.ts";
import { SCENARIOS } from "./scenarios.ts";

const EVENTS = 1_000;
const EVENTS_QUICK = 100;
const ALONE = 20;
const ALONE_QUICK = 5;
const LEDGER_BYTES = 10e9;
const TICKS = 5;

/** What an event costs in everything that is billed, counted by the Worker itself. */
export const cost: Section = async (context) => {
  const counted = await startCountedRelay();
  try {
    const place = { ...counted, tenant: await createTenant(counted.relay, "cost") };
    const rows: Row[] = [];
    for (const bytes of context.quick ? [1_000] : [1_000, 20_000])
      rows.push(...(await measureScenarios(context, place, bytes)));
    rows.push(await measureLaneAlarm(context, place), await measureTick(place));
    rows.push(await measureRetention(context));
    context.note(`Prices of ${PRICES_DATE}, without processor time, logs and storage. Each row is a unit of its kind.`);
    context.note(
      "Trips and milliseconds of objects are not billed as such; the watchdog's share is in rows of its own.",
    );
    return rows;
  } finally {
    await counted.stop();
  }
};

async function measureScenarios(context: BenchContext, place: CostPlace, bytes: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { name, prepare, isAlone, deliveries = 1 } of SCENARIOS) {
    if (isAlone && bytes > 1_000) continue;
    const many = (context.quick ? EVENTS_QUICK : EVENTS) / deliveries;
    const events = isAlone ? (context.quick ? ALONE_QUICK : ALONE) : many;
    const measured = await measure(place, await prepare(place, { bytes, events }));
    rows.push(toCostRow(name, bytes, events, measured));
    if (name !== "unordered") continue;
    const perEvent = measured.ledgerBytes / events;
    context.note(
      `${bytes} bytes, unordered: ${Math.round(perEvent)} bytes an event in the ledger, so 10 GB are ` +
        `${round(LEDGER_BYTES / perEvent / 1e6, 1)} million events.`,
    );
  }
  return rows;
}

/** A lane's alarm stands behind its work and fires later, when there is none: an event that comes alone pays for all of it. */
async function measureLaneAlarm(context: BenchContext, place: CostPlace): Promise<Row> {
  const { receiver, relay, tenant, driver } = place;
  if (context.quick) return { kind: "strict, alone, with its alarm", kb: 1, events: 0 };
  const type = "cost.alarm";
  await subscribe(tenant, { url: `${receiver.url}/${type}`, type, timeout_ms: 1_000, ordering_mode: "strict" });
  const body = JSON.stringify({ type, source: "orders", idempotency_key: "alarm-$N", payload: {} });
  const measured = await measure(place, async () => {
    const before = (await place.read()).counts.lane.invocations;
    await driver.run({
      key: tenant.key,
      url: `${relay.url}/v1/events`,
      bodies: [body],
      pace: { concurrency: 1 },
      until: { requests: 1 },
    });
    const giveUpAt = Date.now() + 60_000;
    while ((await place.read()).counts.lane.invocations === before && Date.now() < giveUpAt) await sleep(1_000);
  });
  return toCostRow("strict, alone, with its alarm", 1_000, 1, measured);
}

async function measureTick(place: CostPlace): Promise<Row> {
  const measured = await measure(place, async () => {
    for (let n = 0; n < TICKS; n++) await place.tick();
  });
  return toCostRow("tick of the watchdog", 0, TICKS, ofWatchdog(measured));
}

/** Expired events, one delivery and one attempt each, from the start of a relay until none is left. */
async function measureRetention(context: BenchContext): Promise<Row> {
  const events = context.quick ? 1_000 : 10_000;
  const stateDir = mkdtempSync(join(tmpdir(), "hooklane-bench-"));
  try {
    const before = await startRelay({ stateDir });
    const tenant = await createTenant(before, "retention");
    await subscribe(tenant, { url: "http://127.0.0.1:9/", type: "nothing" });
    await before.stop();
    fillLedger({ stateDir, tenantId: tenant.tenantId, tenants: 1, endpoints: 1, events, days: 1, daysAgo: 40 });
    const counted = await startCountedRelay(stateDir);
    try {
      // It begins by itself.
      let answer = await counted.read();
      const giveUpAt = Date.now() + 120_000;
      while (answer.counts.watchdog.objectsDeleted < events && Date.now() < giveUpAt) {
        await sleep(500);
        answer = await counted.read();
      }
      const { watchdog, cron } = answer.counts;
      const counts = addCounts([watchdog, cron]);
      return toCostRow("retention", 1_000, events, {
        counts,
        background: counts,
        alarms: watchdog.invocations,
        answer,
        ledgerBytes: NaN,
      });
    } finally {
      await counted.stop();
    }
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
}

function ofWatchdog(measured: Measured): Measured {
  return { ...measured, counts: measured.background, alarms: measured.answer.counts.watchdog.invocations };
}

function toCostRow(kind: string, bytes: number, units: number, measured: Measured): Row {
  const { counts, alarms, answer } = measured;
  const each = (n: number) => round(n / units, 2);
  const price = dollarsPerMillion(counts, alarms) / units;
  return {
    kind,
    kb: bytes / 1_000,
    events: units,
    "rows written": each(counts.rowsWritten),
    "rows read": each(counts.rowsRead),
    trips: each(counts.ledgerTrips),
    "trips to ack": answer.acks.count > 0 ? round(answer.acks.trips / answer.acks.count, 2) : null,
    "R2 A": each(counts.classA),
    "R2 B": each(counts.classB),
    "queue ops": each(counts.queueWrites + counts.queueReads + counts.queueDeletes),
    requests: each(counts.invocations - alarms),
    "object calls": each(counts.objectCalls),
    alarms: each(alarms),
    "object rows": each(counts.objectRowsWritten),
    "object ms": each(counts.objectMs),
    "ledger bytes": Number.isFinite(measured.ledgerBytes) ? Math.round(measured.ledgerBytes / units) : null,
    "$/M": round(price, 2),
  };
}
