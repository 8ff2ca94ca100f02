import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { createEndpointStore } from "../../../src/storage/config/endpoints.ts";
import { createSubscriptionStore } from "../../../src/storage/config/subscriptions.ts";
import { createRandom } from "../lane/support.ts";
import { createApi, createTestTenant, operatorToken, type Api, type TestTenant } from "../support/api.ts";

const operator = createApi(operatorToken);
const URL = "https://hooks.example.com/in";

interface Noun {
  /** Who lists them. */
  api(t: TestTenant): Api;
  /** Makes one, and gives back what of it is listed. */
  create(t: TestTenant, n: number): Promise<string[]>;
}

const ids = async (answer: Promise<{ status: number; body: any }>): Promise<string[]> => {
  const { status, body } = await answer;
  if (status !== 201) throw new Error(JSON.stringify(body));
  return [body.id];
};
const publish = async (t: TestTenant, n: number) =>
  (await t.api.post("/v1/events", { type: "a.b", source: "orders", payload: n })).body;
const firstEndpoint = async (t: TestTenant) => (await t.api.get("/v1/endpoints")).body.data[0].id as string;

const NOUNS: Record<string, Noun> = {
  tenants: { api: () => operator, create: (_, n) => ids(operator.post("/v1/tenants", { name: `t${n}` })) },
  sources: { api: (t) => t.api, create: (t, n) => ids(t.api.post("/v1/sources", { name: `s${n}` })) },
  endpoints: { api: (t) => t.api, create: (t) => ids(t.api.post("/v1/endpoints", { url: URL })) },
  subscriptions: {
    api: (t) => t.api,
    create: async (t) =>
      ids(t.api.post("/v1/subscriptions", { endpoint_id: await firstEndpoint(t), event_type_pattern: "x" })),
  },
  "api-keys": { api: (t) => t.api, create: (t) => ids(t.api.post("/v1/api-keys", { scope: "read" })) },
  events: { api: (t) => t.api, create: async (t, n) => [(await publish(t, n)).id] },
  // Every other one is replayed: replays are listed by another index than first deliveries.
  deliveries: {
    api: (t) => t.api,
    async create(t, n) {
      const { id } = (await publish(t, n)).deliveries[0];
      if (n % 2 === 0) return [id];
      await t.api.post(`/v1/deliveries/${id}/cancel`);
      return [id, (await t.api.post(`/v1/deliveries/${id}/replay`)).body.id];
    },
  },
};

/** A tenant whose deliveries stay where they are. */
async function createQuietTenant(): Promise<TestTenant> {
  const t = await createTestTenant();
  await t.api.post("/v1/sources", { name: "orders" });
  const { body } = await t.api.post("/v1/endpoints", { url: URL });
  await t.api.post("/v1/subscriptions", { endpoint_id: body.id, event_type_pattern: "a.*" });
  await t.api.post(`/v1/endpoints/${body.id}/pause`);
  return t;
}

test.each(Object.keys(NOUNS).flatMap((noun) => [1, 2, 3].map((seed) => [noun, seed] as const)))(
  "a walk over %s skips nothing and doubles nothing while others are made between its pages (chance %d)",
  async (name, seed) => {
    const noun = NOUNS[name]!;
    const random = createRandom(seed);
    const t = await createQuietTenant();
    let n = 0;
    // At once, so that several are of one millisecond.
    const make = (count: number) => Promise.all(Array.from({ length: count }, () => noun.create(t, n++)));
    const present = [...(await make(7)), ...(await make(6))].flat();

    const seen: { id: string; created_at: string }[] = [];
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null;) {
      const limit = name === "tenants" ? 40 : 1 + Math.floor(random() * 4);
      const { body } = await noun.api(t).get(`/v1/${name}?limit=${limit}${cursor && `&cursor=${cursor}`}`);
      expect(body.data.length).toBeLessThanOrEqual(limit);
      seen.push(...body.data);
      cursor = body.next_cursor;
      if (++pages <= 8) await make(Math.floor(random() * 4));
    }
    const found = seen.map(({ id }) => id);
    expect(new Set(found).size).toBe(found.length);
    expect(present.filter((id) => !found.includes(id))).toEqual([]);
    const times = seen.map(({ created_at: createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted().toReversed());
    const { body } = await t.api.get("/v1/endpoints?limit=250");
    for (const { id } of body.data) await t.api.delete(`/v1/endpoints/${id}`);
  },
);

test("a page of endpoints or subscriptions reads no more rows with a thousand deleted ones than with none", async () => {
  const t = await createTestTenant();
  for (let n = 0; n < 5; n++) {
    const { body } = await t.api.post("/v1/endpoints", { url: URL });
    await t.api.post("/v1/subscriptions", { endpoint_id: body.id, event_type_pattern: "x" });
  }
  const db = shardsOf(env as Env).get(t.shard)!;
  const readsOf = async () => {
    let reads = 0;
    // Drizzle asks for raw results, which say nothing of what they cost.
    const prepare = (sql: string) => ({
      bind: (...values: unknown[]) => ({
        async raw() {
          const statement = db.prepare(sql).bind(...values);
          reads += (await statement.all()).meta.rows_read;
          return statement.raw();
        },
      }),
    });
    const counted = { prepare } as unknown as D1Database;
    const page = { limit: 3, after: null, disabledAfter: null };
    expect(await createEndpointStore(counted).page(t.id, page)).toHaveLength(3);
    expect(await createSubscriptionStore(counted).page(t.id, { ...page, endpointId: null })).toHaveLength(3);
    return reads;
  };
  const before = await readsOf();
  const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)";
  await db.batch(
    [
      `${numbers} insert into endpoint (tenant_id, id, url, retry_policy_id, created_at, deleted_at)
       select tenant_id, 'ep_gone' || n.i, url, retry_policy_id, created_at + n.i, 1
       from n cross join (select * from endpoint where tenant_id = ?1 limit 1)`,
      `${numbers} insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at, deleted_at)
       select tenant_id, 'sub_gone' || n.i, endpoint_id, 'x', created_at + n.i, 1
       from n cross join (select * from subscription where tenant_id = ?1 limit 1)`,
    ].map((sql) => db.prepare(sql).bind(t.id)),
  );
  expect(before).toBeGreaterThan(0);
  expect(await readsOf()).toBe(before);
});

test("a replay that is older than its event, by the clock of another machine, takes nothing out of a walk, either way", async () => {
  const t = await createQuietTenant();
  const { create } = NOUNS["deliveries"]!;
  for (let n = 0; n < 8; n++) await create(t, n);
  const db = shardsOf(env as Env).get(t.shard)!;
  // As old as the oldest event that there is.
  await db
    .prepare(
      `update delivery set created_at = (select min(relayed_at) from event where tenant_id = ?1)
       where tenant_id = ?1 and replay_no > 0`,
    )
    .bind(t.id)
    .run();
  const page = async (query: string) => (await t.api.get(`/v1/deliveries?${query}`)).body;
  const all = (await page("limit=250")).data.map(({ id }: { id: string }) => id);
  expect(all).toHaveLength(12);
  const walk = async (direction: "next_cursor" | "prev_cursor", from: string) => {
    const seen: string[] = [];
    let last = "";
    for (let cursor: string | null = from; cursor !== null && seen.length < 20;) {
      const body = await page(`limit=1${cursor && `&cursor=${cursor}`}`);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      last = body.prev_cursor ?? last;
      cursor = body[direction];
    }
    return { seen, last };
  };
  const forward = await walk("next_cursor", "");
  expect(forward.seen).toEqual(all);
  expect((await walk("prev_cursor", forward.last)).seen).toEqual(all.slice(0, -1).toReversed());
});
