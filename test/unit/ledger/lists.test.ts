import { expect, test } from "vitest";
import type { DeliveryFilters } from "../../../src/core/delivery-filters.ts";
import type { Delivery, Event } from "../../../src/core/model.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import type { Place } from "../../../src/core/two-way.ts";
import { createListDeliveriesLedger } from "../../../src/storage/ledger/list-deliveries.ts";
import { createListEventsLedger, type EventFilters } from "../../../src/storage/ledger/list-events.ts";
import { createD1 } from "./support/d1.ts";
import { createRandomLedger, NOW, TENANT } from "./support/random-ledger.ts";

type Row = Record<string, any>;
type Read = (from: Place<any> | null, limit: number) => Promise<{ ids: string[]; older: any; newer: any }>;

const { sqlite, db } = createD1();
/** So short that a few dozen rows are many looks, and now and then too much is open. */
const REACHES = [
  { firstLook: 1, maxReads: 1, maxOpen: 0 },
  { firstLook: 3, maxReads: 40, maxOpen: 10 },
  { firstLook: 500, maxReads: 50_000, maxOpen: 10_000 },
];

const idOf = (row: Row) =>
  deliveryId({ eventId: row["event_id"], endpointId: row["endpoint_id"], replayNo: row["replay_no"] });

const newestFirst = (key: string[]) => (a: Row, b: Row) => {
  const column = key.find((name) => a[name] !== b[name])!;
  return a[column] < b[column] ? 1 : -1;
};

/** What the contract says of each filter, in other words than those of the ledger. */
function passes(row: Row, filters: DeliveryFilters): boolean {
  const event = row["event"] as Row;
  const after = (value: number | null, bound?: number) => bound === undefined || (value !== null && value > bound);
  const before = (value: number | null, bound?: number) => bound === undefined || (value !== null && value < bound);
  const is = (value: unknown, asked: unknown) => asked === undefined || value === asked;
  return (
    is(row["endpoint_id"], filters.endpointId) &&
    is(row["subscription_id"], filters.subscriptionId) &&
    is(row["event_id"], filters.eventId) &&
    is(event["type"], filters.eventType) &&
    (filters.source === undefined || [event["source_id"], event["source_name"]].includes(filters.source)) &&
    is(row["status"], filters.status) &&
    (!filters.isOpen || row["replayed_as"] === null) &&
    is(row["last_error_class"], filters.errorClass) &&
    is(row["last_status_code"], filters.statusCode) &&
    is(row["final_outcome"], filters.finalOutcome) &&
    (filters.workerId === undefined || row["workers"].includes(filters.workerId)) &&
    is(row["relay_region"], filters.relayRegion) &&
    is(row["schema_version"] ?? event["schema_version"], filters.schemaVersion) &&
    after(row["created_at"], filters.createdAfter) &&
    before(row["created_at"], filters.createdBefore) &&
    after(event["occurred_at"], filters.occurredAfter) &&
    before(event["occurred_at"], filters.occurredBefore) &&
    after(row["terminal_at"], filters.terminalAfter) &&
    before(row["terminal_at"], filters.terminalBefore)
  );
}

function allDeliveries(filters: DeliveryFilters): string[] {
  const rows = sqlite
    .prepare("select * from delivery where tenant_id = ? and expires_at > ?")
    .all(TENANT, NOW) as Row[];
  const events = new Map(
    (
      sqlite
        .prepare(
          `select e.*, s.name as source_name from event e join source s on s.tenant_id = e.tenant_id and s.id = e.source_id
         where e.tenant_id = ?`,
        )
        .all(TENANT) as Row[]
    ).map((event) => [event["id"], event]),
  );
  const attempts = sqlite.prepare("select * from attempt where tenant_id = ?").all(TENANT) as Row[];
  const workersOf = Map.groupBy(attempts, idOf);
  return rows
    .map((row) => ({
      ...row,
      event: events.get(row["event_id"]),
      workers: (workersOf.get(idOf(row)) ?? []).map((attempt) => attempt["worker_id"]),
    }))
    .filter((row) => passes(row, filters))
    .toSorted(newestFirst(["created_at", "event_id", "endpoint_id", "replay_no"]))
    .map(idOf);
}

/** All pages from one on, in one direction, and the places they gave out. */
async function walk(read: Read, from: Place<any> | null, direction: "older" | "newer", limit: number) {
  const ids: string[] = [];
  const pages: { ids: string[]; older: Place<any> | null; newer: Place<any> | null }[] = [];
  let place = from;
  do {
    const page = await read(place, limit);
    expect(page.ids.length).toBeLessThanOrEqual(limit);
    pages.push(page);
    ids[direction === "older" ? "push" : "unshift"](...page.ids);
    place = page[direction];
    expect(pages.length, "a walk that does not end").toBeLessThan(2_000);
  } while (place !== null);
  return { ids, pages };
}

async function holdsBothWays(read: Read, expected: string[], limit: number, pick: <T>(items: T[]) => T) {
  const down = await walk(read, null, "older", limit);
  expect(down.ids).toEqual(expected);
  expect(down.pages[0]!.newer).toBeNull();
  // From any page on the way, what is before it is exactly what was shown before it.
  const at = pick([...down.pages.keys()]);
  const before = down.pages.slice(0, at).flatMap(({ ids }) => ids);
  const back = down.pages[at]!.newer;
  const up = back ? await walk(read, back, "newer", limit) : { ids: [], pages: [] };
  expect(up.ids).toEqual(before);
  // And from any page of those, down again.
  const turn = up.pages.length > 0 ? pick(up.pages) : null;
  if (!turn) return;
  const shown = new Set(down.ids.slice(down.ids.indexOf(turn.ids.at(-1) ?? "") + 1));
  const downAgain = await walk(read, turn.older, "older", limit);
  if (turn.ids.length > 0) expect(downAgain.ids).toEqual(down.ids.filter((id) => shown.has(id)));
  else expect(down.ids.join(" ")).toContain(downAgain.ids.join(" "));
}

test("deliveries of any filters are listed whole and in order, both ways, however far a call looks", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const ledger = createRandomLedger(sqlite, seed, 24);
    for (let n = 0; n < 12; n++) {
      const filters = ledger.filters();
      const limit = ledger.pick([1, 2, 5, 100]);
      const ledgerList = createListDeliveriesLedger(db, ledger.pick(REACHES));
      const read: Read = async (from, size) => {
        const { rows, older, newer } = await ledgerList.listDeliveries(TENANT, filters, from, size, NOW);
        return { ids: rows.map((row: Delivery) => deliveryId(row)), older, newer };
      };
      const expected = allDeliveries(filters);
      await holdsBothWays(read, expected, limit, ledger.pick).catch((error: unknown) => {
        throw new Error(`seed ${seed}, ${n}: ${JSON.stringify(filters)} by ${limit}`, { cause: error });
      });
    }
  }
});

test("events of any filters are listed whole and in order, both ways, however far a call looks", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const ledger = createRandomLedger(sqlite, seed, 24);
    for (let n = 0; n < 8; n++) {
      const { eventType: type, createdAfter, createdBefore } = ledger.filters();
      const filters: EventFilters = { type, createdAfter, createdBefore };
      const ledgerList = createListEventsLedger(db, ledger.pick(REACHES));
      const read: Read = async (from, size) => {
        const { rows, older, newer } = await ledgerList.listEvents(TENANT, filters, from, size, NOW);
        return { ids: rows.map((row: Event) => row.id), older, newer };
      };
      const expected = (
        sqlite.prepare("select * from event where tenant_id = ? and expires_at > ?").all(TENANT, NOW) as Row[]
      )
        .filter((row) => type === undefined || row["type"] === type)
        .filter((row) => createdAfter === undefined || row["relayed_at"] > createdAfter)
        .filter((row) => createdBefore === undefined || row["relayed_at"] < createdBefore)
        .toSorted(newestFirst(["id"]))
        .map((row) => row["id"]);
      await holdsBothWays(read, expected, ledger.pick([1, 2, 5, 100]), ledger.pick);
    }
  }
});

test("what is accepted while a list is paged through displaces and repeats no row, in either direction", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const ledger = createRandomLedger(sqlite, seed, 20);
    const filters = ledger.filters();
    const list = createListDeliveriesLedger(db, ledger.pick(REACHES.slice(1)));
    const before = allDeliveries(filters);
    const growing: Read = async (from, size) => {
      const { rows, older, newer } = await list.listDeliveries(TENANT, filters, from, size, NOW);
      ledger.grow(2);
      return { ids: rows.map((row) => deliveryId(row)), older, newer };
    };
    const wasThere = new Set(before);
    const down = await walk(growing, null, "older", 6);
    expect(new Set(down.ids).size).toBe(down.ids.length);
    expect(down.ids.filter((id) => wasThere.has(id))).toEqual(before);
    const last = down.pages.at(-1)!;
    if (last.newer === null) continue;
    const up = await walk(growing, last.newer, "newer", 6);
    expect(new Set(up.ids).size).toBe(up.ids.length);
    expect(up.ids.filter((id) => wasThere.has(id))).toEqual(before.filter((id) => !last.ids.includes(id)));
  }
});
