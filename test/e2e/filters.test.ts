import { beforeAll, expect, test } from "vitest";
import { createTenant, expectStatus, listAll, publish, terminalDelivery, type TestTenant } from "./support/client.ts";
import { withReceiver, type Receiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();
let tenant: TestTenant;
beforeAll(async () => {
  tenant = await createTenant(relay.url);
});

async function subscribe(url: string, filter: string | null, owner = tenant) {
  const endpoint = await expectStatus(201, owner.admin.post("/v1/endpoints", { url }));
  const fields = { endpoint_id: endpoint.id, event_type_pattern: "order.*", filter };
  const subscription = await expectStatus(201, owner.admin.post("/v1/subscriptions", fields));
  return { endpointId: endpoint.id as string, id: subscription.id as string };
}

const pathsOf = ({ received }: Receiver) => received.map(({ path }) => path).toSorted();
const settle = (owner: TestTenant, accepted: any) =>
  Promise.all(accepted.deliveries.map(({ id }: { id: string }) => terminalDelivery(owner, id)));

test("receivers get what their filters say yes to, byte for byte, and nothing else", () =>
  withReceiver(async (receiver) => {
    const owner = await createTenant(relay.url);
    await subscribe(`${receiver.url}/large`, "payload.total > 100", owner);
    await subscribe(`${receiver.url}/exact`, "payload.id == 9007199254740993", owner);
    await subscribe(`${receiver.url}/lines`, 'payload.lines.exists(line, line.sku == "A-7")', owner);
    await subscribe(`${receiver.url}/all`, null, owner);
    const payloads = [
      '{"total": 120.5, "id": 9007199254740993}',
      '{"total": 99, "id": 9007199254740992, "lines": [{"sku": "B"}, {"sku": "A-7"}]}',
      '{ "lines" : [ ] }',
    ];
    for (const payload of payloads) {
      const body = `{"type":"order.created","source":"orders","payload":${payload}}`;
      await settle(owner, await expectStatus(202, owner.admin.post("/v1/events", body)));
    }
    expect(pathsOf(receiver)).toEqual(["/all", "/all", "/all", "/exact", "/large", "/lines"]);
    const bodyAt = (path: string) => receiver.received.find((request) => request.path === path)!.body.toString();
    expect(bodyAt("/exact")).toContain(payloads[0]);
    expect(bodyAt("/lines")).toContain(payloads[1]);
  }));

test("a filter that fails holds up nobody, is seen on the event and its subscription, and when it is mended it delivers", () =>
  withReceiver(async (receiver) => {
    const owner = await createTenant(relay.url);
    const { id } = await subscribe(`${receiver.url}/filtered`, "payload.total > 100", owner);
    await subscribe(`${receiver.url}/all`, null, owner);
    const accepted = await publish(owner, { payload: { total: "120" } });
    const skipped = [{ subscription_id: id, reason: "type_mismatch" }];
    expect(accepted).toMatchObject({ delivery_count: 1, skipped_count: 1, skipped });
    await settle(owner, accepted);
    expect(pathsOf(receiver)).toEqual(["/all"]);
    expect(await expectStatus(200, owner.admin.get(`/v1/events/${accepted.id}`))).toMatchObject({ skipped });
    const path = `/v1/subscriptions/${id}`;
    expect(await expectStatus(200, owner.admin.get(path))).toMatchObject({
      filter_failed_reason: "type_mismatch",
      filter_failed_event_id: accepted.id,
    });
    const tried = owner.admin.post("/v1/subscriptions/test", { subscription_id: id, event_id: accepted.id });
    expect(await expectStatus(200, tried)).toMatchObject({ matched: false, skipped: true, reason: "type_mismatch" });

    const mended = await expectStatus(
      200,
      owner.admin.call("PATCH", path, { filter: "double(payload.total) > 100.0" }),
    );
    expect(mended).toMatchObject({ filter_failed_at: null });
    await settle(owner, await publish(owner, { payload: { total: "120" } }));
    expect(pathsOf(receiver)).toEqual(["/all", "/all", "/filtered"]);
  }));

test("a delivery says what its filter took: steps, and milliseconds where the clock runs, never 0", () =>
  withReceiver(async (receiver) => {
    const owner = await createTenant(relay.url);
    await subscribe(receiver.url, "payload.all(x, payload.exists(y, x == y))", owner);
    const accepted = await publish(owner, { payload: Array.from({ length: 100 }, (_, n) => n) });
    const [delivery] = (await settle(owner, accepted)) as any[];
    expect(delivery.filter_match_steps).toBeGreaterThan(10_000);
    expect(delivery.filter_match_ms === null || delivery.filter_match_ms > 0).toBe(true);
    const replay = await expectStatus(202, owner.admin.post(`/v1/deliveries/${delivery.id}/replay`));
    expect(await terminalDelivery(owner, replay.id)).toMatchObject({ filter_match_steps: null, filter_match_ms: null });
  }));

test("a filter that wants hours of work on a payload of 256 KiB costs an event no more than its bound, and the relay goes on", () =>
  withReceiver(async (receiver) => {
    const owner = await createTenant(relay.url);
    const hours = "payload.all(x, payload.all(y, payload.all(z, x + y + z < 4)))";
    const { id } = await subscribe(`${receiver.url}/hours`, hours, owner);
    await subscribe(`${receiver.url}/all`, null, owner);
    const largest = Array(131_000).fill(1);
    const accepted = await publish(owner, { payload: largest });
    expect(accepted).toMatchObject({ skipped: [{ subscription_id: id, reason: "filter_work_exceeded" }] });
    await settle(owner, accepted);
    expect(pathsOf(receiver)).toEqual(["/all"]);
  }));

test("a change of a filter holds for what is published after its answer", () =>
  withReceiver(async (receiver) => {
    const owner = await createTenant(relay.url);
    const { id } = await subscribe(receiver.url, "payload.n == 1", owner);
    for (let n = 1; n <= 10; n++) {
      const filter = n % 2 === 1 ? "payload.n == 1" : "payload.n == 2";
      await expectStatus(200, owner.admin.call("PATCH", `/v1/subscriptions/${id}`, { filter }));
      const { delivery_count } = await publish(owner, { payload: { n: 1 } });
      expect(delivery_count).toBe(n % 2);
    }
    expect(await listAll(owner, "/v1/deliveries")).toHaveLength(5);
  }));

test("a filter that cannot be is refused with its place, and nothing is stored", async () => {
  const before = await listAll(tenant, "/v1/subscriptions");
  const endpoint = await expectStatus(201, tenant.admin.post("/v1/endpoints", { url: "http://127.0.0.1:9" }));
  const fields = { endpoint_id: endpoint.id, event_type_pattern: "*", filter: "payload.total >\n  && true" };
  const problem = await expectStatus(422, tenant.admin.post("/v1/subscriptions", fields));
  expect(problem).toMatchObject({
    code: "validation_failed",
    errors: [{ path: "filter", position: { offset: 18, line: 2, column: 3 } }],
  });
  expect(await listAll(tenant, "/v1/subscriptions")).toEqual(before);
});
