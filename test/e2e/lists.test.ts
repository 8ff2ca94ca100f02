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
  ["/v1/deliveries?colour=red", "colour"],
  ["/v1/deliveries?limit=5&limit=6", "limit"],
  ["/v1/events?type=no%20type", "type"],
  ["/v1/events?cursor=abc", "cursor"],
])("%s is refused by the name of its parameter", async (path, parameter) => {
  const tenant = await createTenant(relay.url);
  const problem = await expectStatus(422, tenant.admin.get(path));
  expect(problem.errors).toEqual([expect.objectContaining({ path: parameter })]);
});
