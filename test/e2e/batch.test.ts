import { describe, expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, listAll, publish, terminalDelivery } from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

const ORDER = { type: "order.created", source: "orders", payload: { id: 1 }, idempotency_key: "order-1" };

describe("one batch request", () => {
  test("with a key given twice delivers it once, and everything beside it", () =>
    withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url });
      const other = { type: "order.paid", source: "orders", payload: 1 };
      const events = [other, ORDER, { ...other, payload: 2 }, ORDER, { ...ORDER, payload: "differs" }, other];
      const { results } = await expectStatus(202, tenant.admin.post("/v1/events/batch", { events }));
      expect(results.map(({ status }: { status: number }) => status)).toEqual([202, 202, 202, 200, 422, 202]);
      expect(results[3]).toEqual({ ...results[1], status: 200, duplicate: true });
      expect(results[4].error).toMatchObject({ code: "idempotency_key_reused" });
      for (const { deliveries } of [results[0], results[1], results[2], results[5]]) {
        await terminalDelivery(tenant, deliveries[0].id);
      }
      expect(receiver.received).toHaveLength(4);
      expect(await listAll(tenant, "/v1/events")).toHaveLength(4);
    }));

  test("whose keys are partly held already answers each event on its own", async () => {
    const tenant = await createTenant(relay.url);
    const first = await publish(tenant, ORDER);
    const events = [ORDER, { ...ORDER, idempotency_key: "new" }, { ...ORDER, type: "order.paid" }];
    const { results } = await expectStatus(202, tenant.admin.post("/v1/events/batch", { events }));
    expect(results).toEqual([
      { ...first, status: 200, duplicate: true },
      expect.objectContaining({ status: 202, duplicate: false }),
      expect.objectContaining({ status: 422 }),
    ]);
    expect(await listAll(tenant, "/v1/events")).toHaveLength(2);
  });

  test("answers in order, bad events in between, and the good ones arrive", () =>
    withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url });
      const good = (n: number) => `{"type":"good.t${n}","source":"orders","payload":${n}}`;
      const bad: [event: string, code: string, path: string | undefined][] = [
        ['{"type":"no type","source":"orders","payload":1}', "validation_failed", "type"],
        ['{"type":"t","source":"orders"}', "validation_failed", "payload"],
        ['{"type":"t","source":"nobody","payload":1}', "validation_failed", "source"],
        ['{"type":"t","source":"orders","payload":1,"type":"u"}', "duplicate_field", "type"],
        ['{"type":"t","source":"orders","payload":1,"colour":"red"}', "validation_failed", "colour"],
        [
          '{"type":"t","source":"orders","payload":1,"variants":[{}]}',
          "validation_failed",
          "variants.0.schema_version",
        ],
        ["[1]", "validation_failed", ""],
      ];
      const events = bad.flatMap(([event], i) => [good(2 * i), event]);
      const json = tenant.admin.post("/v1/events/batch", `{"events":[${events.join(",")}]}`);
      const ndjson = tenant.admin.post("/v1/events/batch", `${events.join("\r\n\n")}\n`, {
        "Content-Type": "application/x-ndjson",
      });
      for (const answer of [json, ndjson]) {
        const { results } = await expectStatus(202, answer);
        expect(results).toHaveLength(events.length);
        for (const [i, [, code, path]] of bad.entries()) {
          expect(results[2 * i]).toMatchObject({ status: 202, duplicate: false });
          const { status, error } = results[2 * i + 1];
          expect(error).toMatchObject({ status, code });
          expect(error.errors).toEqual([expect.objectContaining({ path })]);
        }
      }
      await receiver.waitFor(2 * bad.length);
      const types = receiver.received.map(({ headers }) => headers["x-webhook-event-type"]);
      const expected = bad.flatMap((_, i) => [`good.t${2 * i}`, `good.t${2 * i}`]);
      expect(types.toSorted()).toEqual(expected.toSorted());
    }));

  test("of NDJSON loses one line that is not JSON, and no other", async () => {
    const tenant = await createTenant(relay.url);
    const good = '{"type":"t","source":"orders","payload":1}';
    const answer = tenant.admin.post("/v1/events/batch", [good, "{not json", good].join("\n"), {
      "Content-Type": "application/x-ndjson",
    });
    const { results } = await expectStatus(202, answer);
    expect(results.map(({ status }: { status: number }) => status)).toEqual([202, 400, 202]);
    expect(await listAll(tenant, "/v1/events")).toHaveLength(2);
  });

  test.each([
    ["501 events", 413, { events: Array.from({ length: 501 }, () => ORDER) }],
    ["no event", 422, { events: [] }],
    ["a field beside events", 422, { events: [ORDER], source: "orders" }],
    ["events that are no array", 422, { events: { 0: ORDER } }],
  ])("of %s is refused whole", async (_, status, body) => {
    const tenant = await createTenant(relay.url);
    await expectStatus(status, tenant.admin.post("/v1/events/batch", body));
    expect(await listAll(tenant, "/v1/events")).toEqual([]);
  });
});
