import { afterAll, beforeAll, expect, test } from "vitest";
import type { DeliveryFilters } from "../../../src/core/delivery-filters.ts";
import { createListDeliveriesLedger } from "../../../src/storage/ledger/list-deliveries.ts";
import { createListEventsLedger } from "../../../src/storage/ledger/list-events.ts";
import { createTestTenant } from "../support/api.ts";
import { notingDatabase, scansIn } from "../support/plans.ts";
import { empty, endAllOpen } from "../support/scene.ts";
import { createHistory, type History } from "./history.ts";

const MANY = 100_000;

let history: History;
beforeAll(async () => {
  history = await createHistory();
  await endAllOpen(history.db);
  await history.grow(1);
});
afterAll(() => empty(history));

/** `found`: that many rows are on the first page of MANY. `reads` at most, whatever there is. */
interface Case {
  name: string;
  filters(history: History): DeliveryFilters;
  index: string;
  found: number;
  reads: number;
  isLast?: boolean;
}

const at = (n: number) => history.begin + n * 1_000;

const CASES: Case[] = [
  { name: "nothing", filters: () => ({}), index: "PRIMARY KEY", found: 50, reads: 1_000 },
  {
    name: "a subscription",
    filters: ({ subscriptionIds }) => ({ subscriptionId: subscriptionIds[1]! }),
    index: "delivery_subscription",
    found: 50,
    reads: 1_500,
  },
  {
    name: "an endpoint",
    filters: ({ endpointIds }) => ({ endpointId: endpointIds[1]! }),
    index: "delivery_subscription",
    found: 50,
    reads: 1_500,
  },
  {
    name: "dead letters of an endpoint in a day",
    filters: ({ endpointIds }) => ({
      endpointId: endpointIds[1]!,
      status: "dead_letter",
      isOpen: true,
      createdAfter: at(MANY - 86_400),
    }),
    index: "COVERING INDEX delivery_unsuccessful",
    found: 50,
    reads: 1_000,
  },
  {
    name: "dead letters of another day, all of which one call looks at",
    filters: ({ endpointIds }) => ({
      endpointId: endpointIds[1]!,
      status: "dead_letter",
      terminalBefore: at(500),
      createdAfter: at(-1),
    }),
    index: "COVERING INDEX delivery_unsuccessful",
    found: 10,
    reads: 10_000,
    isLast: true,
  },
  {
    name: "an error class",
    filters: () => ({ errorClass: "http_5xx" }),
    index: "delivery_due",
    found: 50,
    reads: 8_000,
  },
  {
    name: "an error class that nothing has, all of which one call looks at",
    filters: () => ({ errorClass: "tls" }),
    index: "delivery_due",
    found: 0,
    reads: 20_000,
    isLast: true,
  },
  {
    name: "a final outcome",
    filters: () => ({ finalOutcome: "endpoint_disabled" }),
    index: "COVERING INDEX delivery_unsuccessful",
    found: 50,
    reads: 2_000,
  },
  {
    name: "what is pending",
    filters: ({ endpointIds }) => ({ endpointId: endpointIds[0]!, status: "pending" }),
    index: "delivery_due",
    found: 50,
    reads: 8_000,
  },
  {
    name: "an event type, a source and a worker, of which there are few",
    filters: () => ({ eventType: "odd.event", source: "orders", workerId: "v1.99.queue" }),
    index: "PRIMARY KEY",
    found: 50,
    reads: 1_500,
  },
  {
    name: "what no index serves and nothing has",
    filters: () => ({ eventType: "no.event", source: "orders", workerId: "nobody", schemaVersion: 2 }),
    index: "PRIMARY KEY",
    found: 0,
    reads: 110_000,
  },
];

/** A page of 50, by what it read. */
async function read(filters: DeliveryFilters) {
  const { db, noted } = notingDatabase(history.db);
  const began = performance.now();
  const page = await createListDeliveriesLedger(db).listDeliveries(history.tenant.id, filters, null, 50, Date.now());
  return { ...page, ...noted, ms: performance.now() - began };
}

test("with one delivery no filter reads more than a few rows", async () => {
  for (const { name, filters } of CASES) {
    const { rowsRead, plan } = await read(filters(history));
    expect(rowsRead, name).toBeLessThan(300);
    expect(scansIn(plan), name).toEqual([]);
  }
});

test("with a hundred thousand each filter has its index, scans no table, and reads at most what is said of it", async () => {
  await history.grow(MANY - 1);
  for (const { name, filters, index, found, reads, isLast } of CASES) {
    const page = await read(filters(history));
    console.log(`${name}: ${page.rows.length} rows, ${page.rowsRead} read in ${page.trips} trips`);
    expect(scansIn(page.plan), name).toEqual([]);
    expect(page.plan.join("\n"), name).toContain(index);
    expect(page.rows, name).toHaveLength(found);
    expect(page.rowsRead, name).toBeLessThan(reads);
    if (isLast) expect(page.older, name).toBeNull();
  }
});

test("filters that name what is another tenant's find nothing, and read nothing of it", async () => {
  const stranger = await createTestTenant();
  const [subscriptionId, endpointId] = [history.subscriptionIds[0]!, history.endpointIds[0]!];
  for (const filters of [
    { subscriptionId },
    { endpointId },
    { endpointId, status: "dead_letter" },
  ] as DeliveryFilters[]) {
    const { db, noted } = notingDatabase(history.db);
    const page = await createListDeliveriesLedger(db).listDeliveries(stranger.id, filters, null, 50, Date.now());
    expect(page).toEqual({ rows: [], older: null, newer: null });
    expect(noted.rowsRead).toBeLessThan(20);
  }
});

test("a page of events reads as much both ways", async () => {
  const { db, noted } = notingDatabase(history.db);
  const events = createListEventsLedger(db);
  const first = await events.listEvents(history.tenant.id, { type: "odd.event" }, null, 50, Date.now());
  const second = await events.listEvents(history.tenant.id, { type: "odd.event" }, first.older, 50, Date.now());
  const again = await events.listEvents(history.tenant.id, { type: "odd.event" }, second.newer, 50, Date.now());
  expect(again.rows).toEqual(first.rows);
  expect(scansIn(noted.plan)).toEqual([]);
  expect(noted.rowsRead).toBeLessThan(3 * 1_000);
});
