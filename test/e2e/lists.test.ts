import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  expectStatus,
  listAll,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  receiver.handle(({ path }, response) => {
    response.statusCode = path === "/refusing" ? 400 : 200;
    response.end();
  });
});
afterAll(() => receiver.close());

/** Twelve events of three types from two sources, to an endpoint that takes them and one that refuses; some replayed. */
async function createHistory(): Promise<{ tenant: TestTenant; events: any[]; deliveries: any[] }> {
  const tenant = await createTenant(relay.url);
  await expectStatus(201, tenant.admin.post("/v1/sources", { name: "carts" }));
  await createEndpoint(tenant, { url: `${receiver.url}/taking` }, "order.*");
  await createEndpoint(tenant, { url: `${receiver.url}/refusing` });
  const replayed = new Set([2, 7]);
  for (let i = 0; i < 12; i++) {
    const type = ["order.created", "order.paid", "cart.closed"][i % 3]!;
    const { deliveries } = await publish(tenant, { type, source: i % 2 === 0 ? "orders" : "carts" });
    const ended = [];
    for (const { id } of deliveries) ended.push(await terminalDelivery(tenant, id));
    const dead = ended.find(({ status }) => status === "dead_letter");
    if (!replayed.has(i)) continue;
    const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${dead.id}/replay`));
    await terminalDelivery(tenant, replay.id);
  }
  const [events, deliveries] = [await listAll(tenant, "/v1/events"), await listAll(tenant, "/v1/deliveries")];
  expect(events).toHaveLength(12);
  expect(deliveries).toHaveLength(12 + 8 + replayed.size);
  return { tenant, events, deliveries };
}

/** All selections of these pairs: every combination of filters. */
function subsets<T>(items: T[]): T[][] {
  return items.reduce<T[][]>((all, item) => [...all, ...all.map((some) => [...some, item])], [[]]);
}

const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id);
const isNewestFirst = (times: string[]) => times.every((time, i) => i === 0 || time <= times[i - 1]!);

test("deliveries are listed newest first by any combination of filters, page by page", async () => {
  const { tenant, events, deliveries } = await createHistory();
  expect(isNewestFirst(deliveries.map(({ created_at }) => created_at))).toBe(true);
  const typeOf = new Map(events.map(({ id, type }) => [id, type]));
  // A delivery that all filters but the times are taken from, somewhere in the middle, and of which there is a replay.
  const model = deliveries.find(({ replayed_as }) => replayed_as !== null);
  const after = deliveries.at(-3).created_at;
  const before = deliveries[2].created_at;
  const filters: [name: string, value: string, accepts: (delivery: any) => boolean][] = [
    ["endpoint_id", model.endpoint_id, ({ endpoint_id }) => endpoint_id === model.endpoint_id],
    ["subscription_id", model.subscription_id, ({ subscription_id }) => subscription_id === model.subscription_id],
    ["event_id", model.event_id, ({ event_id }) => event_id === model.event_id],
    ["event_type", typeOf.get(model.event_id), ({ event_id }) => typeOf.get(event_id) === typeOf.get(model.event_id)],
    // Of dead letters those that are open, unless asked otherwise.
    ["status", "dead_letter", ({ status, replayed_as }) => status === "dead_letter" && replayed_as === null],
    ["error_class", "http_4xx", ({ last_error_class }) => last_error_class === "http_4xx"],
    ["created_after", after, ({ created_at }) => created_at > after],
    ["created_before", before, ({ created_at }) => created_at < before],
  ];
  for (const chosen of subsets(filters)) {
    const query = new URLSearchParams(chosen.map(([name, value]) => [name, value]));
    const expected = deliveries.filter((delivery) => chosen.every(([, , accepts]) => accepts(delivery)));
    const listed = await listAll(tenant, `/v1/deliveries?${query}`, 4);
    expect({ query: String(query), ids: idsOf(listed) }).toEqual({ query: String(query), ids: idsOf(expected) });
  }
  const allDead = deliveries.filter(({ status }) => status === "dead_letter");
  expect(allDead.some(({ replayed_as }) => replayed_as !== null)).toBe(true);
  expect(idsOf(await listAll(tenant, "/v1/deliveries?status=dead_letter&include_replayed=true", 4))).toEqual(
    idsOf(allDead),
  );
});

test("deliveries are found by what their last attempt, their event and their end say, two filters at a time", async () => {
  const { tenant, events, deliveries } = await createHistory();
  const eventOf = new Map(events.map((event) => [event.id, event]));
  const middle = deliveries[Math.floor(deliveries.length / 2)];
  const { attempts } = await expectStatus(200, tenant.admin.get(`/v1/deliveries/${middle.id}`));
  const workerId = attempts[0].worker_id;
  const workedOn = new Set<string>();
  for (const { id } of deliveries) {
    const read = await expectStatus(200, tenant.admin.get(`/v1/deliveries/${id}`));
    if (read.attempts.some((attempt: any) => attempt.worker_id === workerId)) workedOn.add(id);
  }
  const occurred = eventOf.get(middle.event_id).occurred_at;
  const ended = middle.terminal_at;
  const filters: [name: string, value: string, accepts: (delivery: any) => boolean][] = [
    ["source", "carts", ({ event_id }) => eventOf.get(event_id).source_id !== tenant.sourceId],
    ["source", tenant.sourceId, ({ event_id }) => eventOf.get(event_id).source_id === tenant.sourceId],
    ["status_code", "400", ({ last_status_code }) => last_status_code === 400],
    ["final_outcome", "delivered", ({ final_outcome }) => final_outcome === "delivered"],
    ["final_outcome", "exhausted", ({ final_outcome }) => final_outcome === "exhausted"],
    ["worker_id", workerId, ({ id }) => workedOn.has(id)],
    ["relay_region", "local", ({ relay_region }) => relay_region === "local"],
    ["schema_version", "1", ({ schema_version }) => schema_version === 1],
    ["schema_version", "2", () => false],
    ["occurred_after", occurred, ({ event_id }) => eventOf.get(event_id).occurred_at > occurred],
    ["occurred_before", occurred, ({ event_id }) => eventOf.get(event_id).occurred_at < occurred],
    ["terminal_after", ended, ({ terminal_at }) => terminal_at > ended],
    ["terminal_before", ended, ({ terminal_at }) => terminal_at < ended],
  ];
  for (const [i, one] of filters.entries()) {
    for (const two of filters.slice(i)) {
      if (one !== two && one[0] === two[0]) continue;
      const query = new URLSearchParams([one, two].slice(one === two ? 1 : 0).map(([name, value]) => [name, value]));
      const expected = deliveries.filter((delivery) => one[2](delivery) && two[2](delivery));
      const listed = await listAll(tenant, `/v1/deliveries?${query}`, 7);
      expect({ query: String(query), ids: idsOf(listed) }).toEqual({ query: String(query), ids: idsOf(expected) });
    }
  }
});

test.each(["/v1/deliveries?limit=6", "/v1/events?limit=4"])(
  "pages of %s are the same on the way back",
  async (path) => {
    const { tenant } = await createHistory();
    const pages = [await expectStatus(200, tenant.admin.get(path))];
    while (pages.at(-1)!.next_cursor !== null) {
      pages.push(await expectStatus(200, tenant.admin.get(`${path}&cursor=${pages.at(-1)!.next_cursor}`)));
    }
    expect(pages.length).toBeGreaterThan(2);
    expect(pages[0]!.prev_cursor).toBeNull();
    for (let i = pages.length - 1; i > 0; i--) {
      const back = await expectStatus(200, tenant.admin.get(`${path}&cursor=${pages[i]!.prev_cursor}`));
      expect(idsOf(back.data)).toEqual(idsOf(pages[i - 1]!.data));
      expect(back.prev_cursor === null).toBe(i === 1);
      const again = await expectStatus(200, tenant.admin.get(`${path}&cursor=${back.next_cursor}`));
      expect(idsOf(again.data)).toEqual(idsOf(pages[i]!.data));
    }
  },
);

test("events are listed newest first by any combination of filters, page by page", async () => {
  const { tenant, events } = await createHistory();
  expect(isNewestFirst(events.map(({ relayed_at }) => relayed_at))).toBe(true);
  const after = events.at(-2).created_at;
  const before = events[1].created_at;
  const filters: [name: string, value: string, accepts: (event: any) => boolean][] = [
    ["type", "order.paid", ({ type }) => type === "order.paid"],
    ["source_id", tenant.sourceId, ({ source_id }) => source_id === tenant.sourceId],
    ["created_after", after, ({ created_at }) => created_at > after],
    ["created_before", before, ({ created_at }) => created_at < before],
  ];
  for (const chosen of subsets(filters)) {
    const query = new URLSearchParams(chosen.map(([name, value]) => [name, value]));
    const expected = events.filter((event) => chosen.every(([, , accepts]) => accepts(event)));
    const listed = await listAll(tenant, `/v1/events?${query}`, 2);
    expect({ query: String(query), ids: idsOf(listed) }).toEqual({ query: String(query), ids: idsOf(expected) });
  }
});

test("an event accepted while a list is being paged through neither repeats nor displaces a row", async () => {
  const { tenant, deliveries } = await createHistory();
  const first = await expectStatus(200, tenant.admin.get("/v1/deliveries?limit=5"));
  await publish(tenant);
  const rest = await expectStatus(200, tenant.admin.get(`/v1/deliveries?limit=250&cursor=${first.next_cursor}`));
  expect(idsOf([...first.data, ...rest.data])).toEqual(idsOf(deliveries));
  expect(rest.next_cursor).toBeNull();
});

test.each([
  ["/v1/deliveries?limit=0", "limit"],
  ["/v1/deliveries?limit=251", "limit"],
  ["/v1/deliveries?status=lost", "status"],
  ["/v1/deliveries?error_class=odd", "error_class"],
  ["/v1/deliveries?endpoint_id=ep_1", "endpoint_id"],
  ["/v1/deliveries?created_after=yesterday", "created_after"],
  ["/v1/deliveries?cursor=abc", "cursor"],
  ["/v1/deliveries?source=No+Name", "source"],
  ["/v1/deliveries?status_code=99", "status_code"],
  ["/v1/deliveries?final_outcome=odd", "final_outcome"],
  ["/v1/deliveries?worker_id=a%20b", "worker_id"],
  ["/v1/deliveries?schema_version=0", "schema_version"],
  ["/v1/deliveries?schema_version=2147483648", "schema_version"],
  ["/v1/deliveries?terminal_after=yesterday", "terminal_after"],
  // A cursor that leads back, to a list that is read forward only.
  [`/v1/sources?cursor=${Buffer.from('[1,"src_0",2]').toString("base64url")}`, "cursor"],
  [`/v1/deliveries?cursor=${Buffer.from('[1,"dlv_0",9]').toString("base64url")}`, "cursor"],
  ["/v1/deliveries?colour=red", "colour"],
  ["/v1/deliveries?limit=5&limit=6", "limit"],
  ["/v1/events?type=no%20type", "type"],
  ["/v1/events?cursor=abc", "cursor"],
])("%s is refused by the name of its parameter", async (path, parameter) => {
  const tenant = await createTenant(relay.url);
  const problem = await expectStatus(422, tenant.admin.get(path));
  expect(problem.errors).toEqual([expect.objectContaining({ path: parameter })]);
});
