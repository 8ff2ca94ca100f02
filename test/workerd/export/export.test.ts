import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { firstEventIdAt } from "../../../src/core/ids.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createExportLedger } from "../../../src/storage/ledger/export.ts";
import { explain } from "../support/plans.ts";
import { createRandom } from "../lane/support.ts";
import { BASE, exportAll, exportOf, fill, forward, idAt, KINDS, parse, request, type Kind } from "./support.ts";

afterEach(() => vi.useRealTimers());
const FAR = 4_000_000_000_000;
const AN_HOUR_MS = 3_600_000;

/** A tenant whose deliveries stay where they are; every other one is replayed. */
async function createHistory(count: number) {
  const tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  const { id } = (await tenant.api.post("/v1/endpoints", { url: "https://hooks.example.com/in" })).body;
  await tenant.api.post("/v1/subscriptions", { endpoint_id: id, event_type_pattern: "a.*" });
  await tenant.api.post(`/v1/endpoints/${id}/pause`);
  for (let n = 0; n < count; n++) await publishOne(tenant, n);
  return { tenant, endpointId: id as string, db: shardsOf(env as Env).get(tenant.shard)! };
}

async function publishOne(tenant: TestTenant, n: number): Promise<void> {
  const event = (await tenant.api.post("/v1/events", { type: "a.b", source: "orders", payload: n })).body;
  if (n % 2 === 0) return;
  await tenant.api.post(`/v1/deliveries/${event.deliveries[0].id}/cancel`);
  await tenant.api.post(`/v1/deliveries/${event.deliveries[0].id}/replay`);
}

async function listed(tenant: TestTenant, kind: "events" | "deliveries"): Promise<any[]> {
  return (await tenant.api.get(`/v1/${kind}?limit=250`)).body.data.toReversed();
}

test.each(["events", "deliveries"] as const)(
  "%s are exported oldest first, exactly as lists have them",
  async (kind) => {
    const { tenant } = await createHistory(7);
    forward(AN_HOUR_MS);
    const { rows, end } = await exportOf(tenant, kind);
    expect(rows).toEqual(await listed(tenant, kind));
    expect(rows).toHaveLength(kind === "events" ? 7 : 10);
    expect(end).toMatchObject({ has_more: false });
  },
);

test("attempts are exported with their deliveries' events, exactly as the delivery has them", async () => {
  const { tenant, endpointId, db } = await createHistory(0);
  await fill(db, tenant, endpointId, 0, 5, FAR);
  const { rows } = await exportOf(tenant, "attempts");
  expect(rows).toHaveLength(10);
  const { body } = await tenant.api.get(`/v1/deliveries/${rows[4].delivery_id}/attempts`);
  // Which has besides what each says of those before it.
  expect(body.data).toMatchObject(rows.slice(4, 6));
});

test.each(KINDS)(
  "%s in answers of any length are those of one answer, and any row can be gone on from",
  async (kind) => {
    const { tenant, endpointId, db } = await createHistory(5);
    await fill(db, tenant, endpointId, 0, 9, FAR);
    forward(AN_HOUR_MS);
    const { rows: all } = await exportOf(tenant, kind);
    expect(all.length).toBeGreaterThan(9);
    for (const limit of ["1", "4", String(all.length)]) expect(await exportAll(tenant, kind, { limit })).toEqual(all);
    for (const [i, { id }] of all.entries()) {
      const { rows } = await exportOf(tenant, kind, { after: id });
      expect(rows, id).toEqual(all.slice(i + 1));
    }
  },
);

test.each(["events", "deliveries"] as const)(
  "%s that come between answers, some of them acknowledged late, are exported once each",
  async (kind) => {
    const { tenant, endpointId, db } = await createHistory(0);
    const random = createRandom(7);
    const post = async (path: string, body?: object) => {
      const init = { method: "POST", ...(body && { body: JSON.stringify(body) }) };
      return (await request(tenant, path, env as Env, init)).json<any>();
    };
    const seen: string[] = [];
    let cursor: string | undefined;
    const take = async (limit: number) => {
      const { rows, end } = await exportOf(tenant, kind, { limit: String(limit), ...(cursor && { cursor }) });
      seen.push(...rows.map(({ id }) => id));
      cursor = end!.next_cursor;
      return rows.length;
    };
    let taken = 0;
    for (let n = 0; n < 40; n++) {
      const event = await post("/v1/events", { type: "a.b", source: "orders", payload: n });
      if (n % 3 === 0) {
        await post(`/v1/deliveries/${event.deliveries[0].id}/cancel`);
        forward(Math.floor(random() * 60_000));
        await post(`/v1/deliveries/${event.deliveries[0].id}/replay`);
      }
      // One that came four minutes ago and is stored only now.
      if (n % 4 === 0) await storeLate(db, tenant, endpointId, event.id, Date.now() - 4 * 60_000);
      forward(Math.floor(random() * 4 * 60_000));
      taken += await take(1 + Math.floor(random() * 4));
    }
    expect(taken).toBeGreaterThan(20);
    forward(AN_HOUR_MS);
    while ((await take(50)) > 0);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual((await exportOf(tenant, kind)).rows.map(({ id }) => id));
    expect(seen.toSorted()).toEqual((await listed(tenant, kind)).map(({ id }) => id).toSorted());
  },
);

/** An event and its delivery as of a moment, in the form of those of another. */
async function storeLate(
  db: D1Database,
  tenant: TestTenant,
  endpointId: string,
  like: string,
  at: number,
): Promise<void> {
  const id = firstEventIdAt(at).slice(0, 14) + like.slice(14);
  await db.batch([
    db
      .prepare(
        `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
           content_type, occurred_at, relayed_at, expires_at)
         select tenant_id, ?3, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json, content_type,
           ?4, ?4, expires_at from event where tenant_id = ?1 and id = ?2`,
      )
      .bind(tenant.id, like, id, at),
    db
      .prepare(
        `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
           terminal_at, expires_at)
         select tenant_id, ?3, endpoint_id, subscription_id, 'cancelled', retry_policy_id, ?4, ?4, expires_at
         from delivery where tenant_id = ?1 and event_id = ?2 and endpoint_id = ?5 and replay_no = 0`,
      )
      .bind(tenant.id, like, id, at, endpointId),
  ]);
}

test("what is not settled yet is left for later, and the last line says until when it went", async () => {
  const { tenant } = await createHistory(2);
  const young = await exportOf(tenant, "events");
  expect(young.rows).toEqual([]);
  expect(Date.parse(young.end!.until)).toBeLessThanOrEqual(Date.now() - 5 * 60_000);
  forward(AN_HOUR_MS);
  const later = await exportOf(tenant, "events", { cursor: young.end!.next_cursor });
  expect(later.rows).toHaveLength(2);
});

test("deliveries of an event whose fan-out is not whole are left for later", async () => {
  const { tenant, endpointId, db } = await createHistory(0);
  await fill(db, tenant, endpointId, 0, 6, FAR);
  await db
    .prepare("insert into fan_out (tenant_id, event_id, part, deliveries) values (?, ?, 0, '[]')")
    .bind(tenant.id, idAt(4))
    .run();
  const before = await exportOf(tenant, "deliveries");
  // Of nobody else: one tenant's fan-outs hold up no other's export.
  const other = await createHistory(0);
  await fill(other.db, other.tenant, other.endpointId, 10, 16, FAR);
  expect((await exportOf(other.tenant, "deliveries")).rows).toHaveLength(6);
  await db.prepare("delete from fan_out where tenant_id = ?").bind(tenant.id).run();
  expect(before.rows).toHaveLength(4);
  const after = await exportOf(tenant, "deliveries", { cursor: before.end!.next_cursor });
  expect(after.rows).toHaveLength(2);
});

test.each(KINDS)("of %s that have expired nothing is shown, and a page of nothing else ends nothing", async (kind) => {
  const { tenant, endpointId, db } = await createHistory(0);
  await fill(db, tenant, endpointId, 0, 1_200, 1);
  await fill(db, tenant, endpointId, 1_200, 1_203, FAR);
  const { rows, end } = await exportOf(tenant, kind);
  expect(rows).toHaveLength(kind === "attempts" ? 6 : 3);
  expect(end!.has_more).toBe(false);
});

test.each(KINDS)("%s between two times are those of a list", async (kind) => {
  const { tenant, endpointId, db } = await createHistory(0);
  await fill(db, tenant, endpointId, 0, 10, FAR);
  const window = {
    created_after: new Date(BASE + 2_000).toISOString(),
    created_before: new Date(BASE + 6_000).toISOString(),
  };
  const { rows, end } = await exportOf(tenant, kind, window);
  const wanted = [3, 4, 5].map(idAt);
  expect([...new Set(rows.map((row) => row.event_id ?? row.id.replace(/^dlv_(.{26}).*/, "evt_$1")))]).toEqual(wanted);
  expect(end!.until).toBe(window.created_before);
});

test("a tenant exports its own rows, a publish key none, and what is not known is refused", async () => {
  const { tenant, endpointId, db } = await createHistory(0);
  await fill(db, tenant, endpointId, 0, 3, FAR);
  const other = (await createHistory(0)).tenant;
  const { rows } = await exportOf(tenant, "deliveries");
  const { end } = await exportOf(tenant, "deliveries", { limit: "1" });
  expect((await exportOf(other, "deliveries", { cursor: end!.next_cursor })).rows).toEqual([]);
  expect((await exportOf(other, "deliveries", { after: rows[0].id })).rows).toEqual([]);
  const sourceId = (await tenant.api.get("/v1/sources")).body.data[0].id;
  const publishKey = await tenant.publishKey(sourceId);
  for (const kind of KINDS) {
    expect((await request(tenant, `/v1/export/${kind}`, env as Env, {}, publishKey)).status).toBe(403);
    expect((await exportOf(other, kind)).rows).toEqual([]);
    for (const query of [
      "limit=0",
      "limit=50001",
      "cursor=x",
      "after=x",
      "type=a",
      `cursor=${end!.next_cursor}&after=x`,
    ]) {
      expect((await request(tenant, `/v1/export/${kind}?${query}`)).status, query).toBe(422);
    }
  }
  expect((await request(tenant, `/v1/export/events?cursor=${end!.next_cursor}`)).status).toBe(422);
});

test.each<[Kind, number]>([
  ["events", 60],
  ["deliveries", 60],
  ["attempts", 120],
])("thirty thousand events' %s are read a page at a time, as fast as somebody takes them", async (kind, pages) => {
  const { tenant, endpointId, db } = await createHistory(0);
  for (let n = 0; n < 30_000; n += 10_000) await fill(db, tenant, endpointId, n, n + 10_000, FAR);
  const cost = createCost();
  const answer = await request(tenant, `/v1/export/${kind}`, countingEnv(env as Env, cost));
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  const before = cost.ledgerTrips;
  let text = "";
  let largest = 0;
  for (let chunks = 0; ; chunks++) {
    const { done, value } = await reader.read();
    if (done) break;
    largest = Math.max(largest, value.length);
    text += decoder.decode(value, { stream: true });
    // Taking one page asks for one page: nothing is read ahead.
    expect(cost.ledgerTrips - before).toBeLessThanOrEqual(chunks + 1);
  }
  const { rows, end } = parse(text);
  const all = kind === "attempts" ? 60_000 : 30_000;
  expect(rows).toHaveLength(Math.min(all, 50_000));
  expect(end!.has_more).toBe(all > 50_000);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  expect(largest).toBeLessThan(1_000_000);
  expect(cost.ledgerTrips).toBeLessThanOrEqual(pages + 5);
  // Each row is read once or with what belongs to it, never the ledger for each page.
  expect(cost.rowsRead).toBeLessThan(rows.length * 5);
  expect(cost.rowsWritten).toBe(0);
});

test("an answer that a fault cuts off has no last line, and goes on behind its last whole row", async () => {
  const { tenant, endpointId, db } = await createHistory(0);
  await fill(db, tenant, endpointId, 0, 1_500, FAR);
  vi.spyOn(console, "error").mockImplementation(() => {});
  let trips = 0;
  const real = shardsOf(env as Env).get(tenant.shard)!;
  const failing = new Proxy(real, {
    get(target, property) {
      const value = Reflect.get(target, property);
      if (property !== "prepare") return typeof value === "function" ? value.bind(target) : value;
      return (sql: string) => {
        if (sql.includes("from event d") && ++trips > 2) throw new Error("D1_ERROR: away");
        return target.prepare(sql);
      };
    },
  });
  const name = tenant.shard === "0" ? "DB" : `DB_${tenant.shard}`;
  const answer = await request(tenant, "/v1/export/events", { ...(env as Env), [name]: failing } as unknown as Env);
  const decoder = new TextDecoder();
  let text = "";
  const reading = async () => {
    const reader = answer.body!.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
    }
  };
  await expect(reading()).rejects.toThrow("away");
  vi.restoreAllMocks();
  const cut = parse(text);
  expect(cut.end).toBeNull();
  expect(cut.rows).toHaveLength(1_000);
  const rest = await exportOf(tenant, "events", { after: cut.rows.at(-1)!.id });
  expect(rest.rows).toHaveLength(500);
  expect(rest.rows[0].id).toBe(idAt(1_000));
});

test("every walk goes along a key, and scans nothing", async () => {
  const { tenant, endpointId, db } = await createHistory(1);
  const planOf = (read: (ledger: ReturnType<typeof createExportLedger>) => Promise<unknown>) =>
    explain(db, (ledger) => read(createExportLedger(ledger)));
  const after = {
    first: [idAt(0), endpointId] as [string, string],
    replay: [0, "", "", 0] as [number, string, string, number],
  };
  const events = await planOf((ledger) => ledger.exportEvents(tenant.id, "", "evt_~", 500, 0));
  const attempts = await planOf((ledger) =>
    ledger.exportAttempts(tenant.id, [idAt(0), endpointId, 0, 0], "evt_~", 500, 0),
  );
  const deliveries = await planOf((ledger) =>
    ledger.exportDeliveries(tenant.id, after, { eventId: "evt_~", createdAt: FAR }, 500, 0),
  );
  const says = (line: RegExp) => expect.arrayContaining([expect.stringMatching(line)]);
  expect(events).toEqual(says(/SEARCH d USING PRIMARY KEY \(tenant_id=\? AND id>\? AND id<\?\)/));
  expect(attempts).toEqual(
    says(
      /SEARCH attempt USING PRIMARY KEY \(tenant_id=\? AND \(event_id,endpoint_id,replay_no,attempt_number\)>\(\?,\?,\?,\?\)/,
    ),
  );
  expect(deliveries).toEqual(
    says(/SEARCH delivery USING PRIMARY KEY \(tenant_id=\? AND \(event_id,endpoint_id\)>\(\?,\?\)/),
  );
  expect(deliveries).toEqual(says(/SEARCH delivery USING INDEX delivery_replay \(tenant_id=\? AND \(created_at/));
  const plan = [...events, ...attempts, ...deliveries];
  expect(plan.filter((line) => /^SCAN (event|delivery|attempt)\b/.test(line))).toEqual([]);
  expect(plan.filter((line) => /TEMP B-TREE/.test(line))).toEqual([]);
});
