import { afterAll, beforeAll, expect, test } from "vitest";
import { find, type FindDeps } from "../../../src/app/find/find.ts";
import { attemptId, deliveryId, webhookId } from "../../../src/core/ids.ts";
import { createFindLedger } from "../../../src/storage/ledger/find.ts";
import { createListEventsLedger } from "../../../src/storage/ledger/list-events.ts";
import { createTestTenant } from "../support/api.ts";
import { notingDatabase, scansIn } from "../support/plans.ts";
import { createScene, empty } from "../support/scene.ts";
import { createHistory, type History } from "./history.ts";

const MANY = 100_000;
const SOUGHT = MANY - 10;

let history: History;
beforeAll(async () => {
  history = await createHistory();
  await history.grow(MANY);
});
afterAll(() => empty(history));

const at = (n: number) => new Date(history.begin + n * 1_000).toISOString();

/** As the use-case does it over this database, noting what it reads. */
async function look(query: Record<string, string>, tenantId = history.tenant.id) {
  const { db, noted } = notingDatabase(history.db);
  const deps: FindDeps = { ...createFindLedger(db), ...createListEventsLedger(db), now: Date.now };
  const found = await find(deps, { tenantId, scope: "read" } as never, query);
  return { ...found, ...noted };
}

/** The delivery of the n-th event, by its key. */
async function deliveryOf(n: number) {
  const row = await history.db
    .prepare(
      `select d.event_id as eventId, d.endpoint_id as endpointId, d.replay_no as replayNo from event e
       join delivery d on d.tenant_id = e.tenant_id and d.event_id = e.id
       where e.source_id = (select id from source where tenant_id = ?1 limit 1) and e.idempotency_key = ?2`,
    )
    .bind(history.tenant.id, `key-${n}`)
    .first<{ eventId: string; endpointId: string; replayNo: number }>();
  return row!;
}

test("each kind of id finds its event and deliveries among a hundred thousand, in as many reads as is said, without a scan", async () => {
  const ref = await deliveryOf(SOUGHT);
  // Of each hundred number 3 failed, number 90 did not; both are within a window of an hour.
  const window = { created_after: at(MANY - 3_600), created_before: at(MANY) };
  const cases: [name: string, query: Record<string, string>, reads: number, among?: string][] = [
    ["event_id", { q: ref.eventId }, 15],
    ["delivery_id", { q: deliveryId(ref) }, 15],
    ["delivery_id", { q: attemptId(deliveryId(ref), 1) }, 15],
    ["webhook_id", { q: webhookId(ref) }, 15],
    ["idempotency_key", { q: `key-${SOUGHT}`, kind: "idempotency_key" }, 20],
    ["partner_request_id", { q: `their-${MANY - 97}`, kind: "partner_request_id", ...window }, 10_000, "failures"],
    ["partner_request_id", { q: `their-${SOUGHT}`, kind: "partner_request_id", ...window }, 10_000, "successes"],
    ["ordering_key", { q: `order-${Math.floor(SOUGHT / 10)}`, kind: "ordering_key", ...window }, 10_000],
  ];
  for (const [kind, query, reads] of cases) {
    const found = await look(query);
    console.log(`${kind} ${query["q"]!.slice(0, 12)}: ${found.rowsRead} read in ${found.trips} trips`);
    expect(found.matches.length, kind).toBe(kind === "ordering_key" ? 10 : 1);
    expect(found.matches[0]!.kind).toBe(kind);
    expect(found.matches[0]!.deliveries).toHaveLength(1);
    expect(
      found.searched.every(({ isComplete }) => isComplete),
      kind,
    ).toBe(true);
    expect(found.nextCursor).toBeNull();
    expect(found.rowsRead, kind).toBeLessThan(reads);
    expect(scansIn(found.plan), kind).toEqual([]);
  }
  const named = await look({ q: attemptId(deliveryId(ref), 1) });
  expect(named.matches[0]!.attemptId).toBe(attemptId(deliveryId(ref), 1));
  expect((await look({ q: attemptId(deliveryId(ref), 2) })).matches).toEqual([]);
});

test("a failure is found by the receiver's request id at any age, at once", async () => {
  const { matches, searched, rowsRead } = await look({
    q: "their-103",
    kind: "partner_request_id",
    created_after: at(MANY),
    created_before: at(MANY + 1),
  });
  expect(matches).toMatchObject([{ kind: "partner_request_id", attemptId: expect.stringMatching(/:1$/) }]);
  expect(searched.find(({ among }) => among === "failures")).toMatchObject({ isComplete: true, from: null });
  expect(rowsRead).toBeLessThan(20);
});

test("where a walk stops it says so, and its cursor goes on until all of the time was looked at", async () => {
  const query = { kind: "partner_request_id", created_after: at(-1), created_before: at(MANY) };
  const first = await look({ ...query, q: "their-10" });
  expect(first.matches).toEqual([]);
  const stopped = first.searched.find(({ among }) => among === "successes")!;
  expect(stopped.isComplete).toBe(false);
  expect(stopped.from!).toBeGreaterThan(history.begin + 11_000);
  expect(first.rowsRead).toBeLessThan(105_000);
  let page = first;
  const matches = [];
  for (let pages = 1; page.nextCursor !== null; pages++) {
    expect(pages).toBeLessThan(10);
    page = await look({ q: "their-10", kind: "partner_request_id", cursor: page.nextCursor });
    matches.push(...page.matches);
  }
  expect(page.searched).toMatchObject([{ among: "successes", isComplete: true, from: history.begin - 999 }]);
  expect(matches).toHaveLength(1);
});

test("an id that a receiver gives to everything is found page by page, each attempt once", async () => {
  await history.db
    .prepare("update attempt set partner_request_id = 'same' where tenant_id = ? and requested_at < ?")
    .bind(history.tenant.id, history.begin + 300_000)
    .run();
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const window = { created_after: at(-1), created_before: at(400) };
    const page = await look({ q: "same", ...(cursor === null ? window : { cursor }) });
    seen.push(...page.matches.map(({ attemptId }) => attemptId!));
    cursor = page.nextCursor;
  } while (cursor !== null);
  // All but those that were never sent.
  expect(seen).toHaveLength(297);
  expect(new Set(seen).size).toBe(297);
});

test("what is open in lanes of an ordering key is found however old it is", async () => {
  const scene = await createScene({ ordering_mode: "keyed" });
  const { ref } = await scene.publishOne({ ordering_key: "customer-7" });
  const { db, noted } = notingDatabase(scene.db);
  const deps: FindDeps = {
    ...createFindLedger(db),
    ...createListEventsLedger(db),
    now: () => Date.now() + 7 * 86_400_000,
  };
  const found = await find(deps, { tenantId: scene.tenant.id, scope: "read" } as never, { q: "customer-7" });
  expect(found.matches.map(({ event }) => event.id)).toEqual([ref.eventId]);
  expect(found.searched.map(({ among }) => among)).toContain("open");
  expect(scansIn(noted.plan)).toEqual([]);
  expect(noted.plan.join("\n")).toContain("delivery_lane (endpoint_id=? AND lane_key=?)");
});

test("nobody finds what is another tenant's", async () => {
  const { id } = await createTestTenant();
  const ref = await deliveryOf(SOUGHT);
  for (const q of [ref.eventId, deliveryId(ref), webhookId(ref), `key-${SOUGHT}`, "their-103"]) {
    expect((await look({ q, created_after: at(-1), created_before: at(MANY) }, id)).matches).toEqual([]);
  }
});
