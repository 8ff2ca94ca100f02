import { expect, test } from "vitest";
import { createEndpoint, createTenant, eventually, expectStatus, publish, terminalDelivery } from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

const search = (kind: string, among: string) => expect.objectContaining({ kind, among, complete: true });

test("whatever id somebody was handed leads to the event, its deliveries and the attempt", () =>
  withReceiver(async (receiver) => {
    receiver.handle(({ n }, response) => {
      response.setHeader("X-Request-Id", `their-${n}`);
      response.writeHead(n === 1 ? 503 : 200).end();
    });
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [0.05] } });
    const { id, deliveries } = await publish(tenant, { idempotency_key: "order-1001", ordering_key: "customer-7" });
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 2 });
    const event = await expectStatus(200, tenant.admin.get(`/v1/events/${id}`));
    await publish(tenant, { idempotency_key: "order-1002" });

    const find = (query: string) => expectStatus(200, tenant.admin.get(`/v1/find?${query}`));
    const attempt = (n: number) => `${delivery.id}:${n}`;
    for (const [q, kind, attemptId] of [
      [id, "event_id", null],
      [delivery.id, "delivery_id", null],
      [attempt(2), "delivery_id", attempt(2)],
      [receiver.received[0]!.headers["webhook-id"], "webhook_id", null],
      ["order-1001", "idempotency_key", null],
      ["their-1", "partner_request_id", attempt(1)],
      ["their-2", "partner_request_id", attempt(2)],
      ["customer-7", "ordering_key", null],
    ]) {
      for (const query of [`q=${q}`, `q=${q}&kind=${kind}`]) {
        const found = await find(query);
        const { data } = found;
        expect({ query, found: data.map((match: any) => [match.kind, match.event.id, match.attempt_id]) }).toEqual({
          query,
          found: [[kind, id, attemptId]],
        });
        expect(data[0]).toMatchObject({ event, deliveries: [{ id: delivery.id }], has_more_deliveries: false });
        expect(found).toMatchObject({ complete: true, next_cursor: null });
      }
    }

    // Nothing is an answer, and says where it was looked.
    const nothing = await find("q=nobodys");
    expect(nothing).toMatchObject({ data: [], complete: true, next_cursor: null });
    expect(nothing.searched).toEqual([
      search("idempotency_key", "all"),
      search("partner_request_id", "failures"),
      search("partner_request_id", "successes"),
      search("ordering_key", "open"),
      search("ordering_key", "events"),
    ]);
    // A success before the window is not looked for.
    const until = event.created_at;
    expect((await find(`q=their-2&created_before=${until}`)).data).toEqual([]);
    expect((await find(`q=their-1&created_before=${until}`)).data).toHaveLength(1);

    // Somebody else's stay somebody else's.
    const stranger = await createTenant(relay.url);
    for (const q of [id, delivery.id, "order-1001", "their-1", "customer-7"]) {
      expect((await expectStatus(200, stranger.admin.get(`/v1/find?q=${q}`))).data).toEqual([]);
    }
  }));

test("a webhook-id leads to a delivery and all its replays", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(400).end());
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant);
    const dead = await terminalDelivery(tenant, deliveries[0].id);
    const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${dead.id}/replay`));
    await eventually(async () => receiver.received.length === 2);
    const { data } = await expectStatus(200, tenant.admin.get(`/v1/find?q=${dead.idempotency_key}`));
    expect(data[0].deliveries.map((delivery: any) => delivery.id)).toEqual([replay.id, dead.id]);
    const one = await expectStatus(200, tenant.admin.get(`/v1/find?q=${dead.id}`));
    expect(one.data[0].deliveries.map((delivery: any) => delivery.id)).toEqual([dead.id]);
  }));

test.each([
  ["", "q"],
  [`q=${"x".repeat(257)}`, "q"],
  ["q=a%00b", "q"],
  ["q=order-1&kind=event_id", "q"],
  ["q=a%20b&kind=ordering_key", "q"],
  ["q=order-1&kind=colour", "kind"],
  ["q=order-1&created_after=yesterday", "created_after"],
  ["q=order-1&cursor=abc", "cursor"],
  [`q=order-1&cursor=${Buffer.from('[1,2,"","x",""]').toString("base64url")}`, "cursor"],
  ["q=order-1&limit=5", "limit"],
])("GET /v1/find?%s is refused by the name of its parameter", async (query, parameter) => {
  const tenant = await createTenant(relay.url);
  const problem = await expectStatus(422, tenant.admin.get(`/v1/find?${query}`));
  expect(problem.errors).toEqual([expect.objectContaining({ path: parameter })]);
});
