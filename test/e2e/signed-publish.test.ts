import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { createEndpoint, expectStatus } from "./support/client.ts";
import { BODY, producersAt } from "./support/producers.ts";
import { withReceiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";
import { signHeaders, signRawHeaders } from "./support/signer.ts";

const relay = await sharedRelay();
const { createProducer, rotate, send, publish, eventsOf, expectNoKeyPrinted } = producersAt(relay);
afterAll(expectNoKeyPrinted);

describe("a producer that signs with a Standard Webhooks library needs no token", () => {
  test("one event, its payload byte for byte; webhook-id is its idempotency key", () =>
    withReceiver(async (receiver) => {
      const producer = await createProducer();
      const { secret } = await createEndpoint(producer.tenant, { url: receiver.url });
      const payload = '{"n":9007199254740993, "u":"a\\/b", "z":"Zoë \\ud800"}';
      const body = `{"type":"order.created","payload":${payload}}`;
      const event = await expectStatus(202, send("/v1/events", body, signHeaders(producer, body, { id: "order-42" })));
      const [request] = await receiver.waitFor(1);
      expect(request!.body.toString()).toContain(`"payload":${payload}}`);
      expect(verifyJson(secret, request!)).toMatchObject({ id: event.id, source: "shop" });
      const [stored] = await eventsOf(producer);
      expect(stored).toMatchObject({ id: event.id, source_id: producer.sourceId, idempotency_key: "order-42" });
    }));

  test("a batch, as JSON and as NDJSON; events without a key of their own get one each", async () => {
    const producer = await createProducer();
    const events = [
      '{"type":"a","payload":1}',
      '{"type":"b","payload":2,"idempotency_key":"own"}',
      '{"type":"c","payload":3}',
    ];
    const body = `{"events":[${events.join(",")}]}`;
    const { results } = await expectStatus(
      202,
      send("/v1/events/batch", body, signHeaders(producer, body, { id: "one" })),
    );
    expect(results.map(({ status }: any) => status)).toEqual([202, 202, 202]);
    const lines = events.slice(0, 1).concat(events.slice(2)).join("\n");
    const ndjson = { ...signHeaders(producer, lines, { id: "two" }), "Content-Type": "application/x-ndjson" };
    await expectStatus(202, send("/v1/events/batch", lines, ndjson));
    const stored = await eventsOf(producer);
    expect(stored.map(({ idempotency_key }) => idempotency_key).toSorted()).toEqual([
      "one",
      "one.2",
      "own",
      "two",
      "two.1",
    ]);
  });

  test("any bytes, with query, content type and encoding under the signature", () =>
    withReceiver(async (receiver) => {
      const producer = await createProducer();
      await createEndpoint(producer.tenant, { url: receiver.url, payload_format: "raw" });
      const body = gzipSync(Buffer.from([0xef, 0xbb, 0xbf, 0xff, 0x00]));
      const url = new URL(`${relay.url}/v1/events/raw?type=order.created&ordering_key=a%2Fb%3a'1&schema_version=2`);
      const content = { "Content-Type": "text/csv; charset=latin1", "Content-Encoding": "gzip" };
      const answer = await fetch(url, { method: "POST", body, headers: signRawHeaders(producer, url, body, content) });
      expect(answer.status).toBe(202);
      const [request] = await receiver.waitFor(1);
      expect(request!.body.equals(body)).toBe(true);
      expect(request!.headers).toMatchObject({
        "content-type": "text/csv; charset=latin1",
        "content-encoding": "gzip",
        "x-webhook-ordering-key": "a/b:'1",
        "x-webhook-schema-version": "2",
      });
    }));

  test("nothing at all, without a content type", async () => {
    const producer = await createProducer();
    const url = new URL(`${relay.url}/v1/events/raw?type=ping`);
    const headers = signRawHeaders(producer, url, Buffer.alloc(0), {});
    expect((await fetch(url, { method: "POST", headers })).status).toBe(202);
  });
});

describe("a rotation", () => {
  test("under traffic refuses no producer, whether it signs with the old key or the new one", async () => {
    const old = await createProducer();
    const signers = [old];
    const over = new AbortController();
    const statuses: number[] = [];
    const traffic = Array.from({ length: 4 }, async () => {
      for (let n = 0; !over.signal.aborted; n++) statuses.push((await publish(signers[n % signers.length]!)).status);
    });
    const published = async (count: number) => {
      while (statuses.length < count) await publish(old).then(({ status }) => statuses.push(status));
    };
    await published(40);
    signers.push(await rotate(old));
    await published(statuses.length + 80);
    over.abort();
    await Promise.all(traffic);
    expect(new Set(statuses)).toEqual(new Set([202]));
    expect(await eventsOf(old)).toHaveLength(statuses.length);
  });

  test("refuses a third key, and forced ends the oldest at once, whatever was remembered of it", async () => {
    const first = await createProducer();
    await expectStatus(202, publish(first));
    const second = await rotate(first, { overlap_hours: 72 });
    for (const signer of [first, second]) await expectStatus(202, publish(signer));
    const path = `/v1/sources/${first.sourceId}/rotate-key`;
    expect(await expectStatus(409, first.tenant.admin.post(path))).toMatchObject({ code: "rotation_in_progress" });
    for (const signer of [first, second]) await expectStatus(202, publish(signer));
    const third = await rotate(first, { force: true });
    expect(await expectStatus(401, publish(first))).toMatchObject({ code: "invalid_signature" });
    for (const signer of [second, third]) await expectStatus(202, publish(signer));
    const fourth = await rotate(first, { force: true });
    // A key that leaked is ended by two.
    await expectStatus(401, publish(second));
    for (const signer of [third, fourth]) await expectStatus(202, publish(signer));
  });

  test("lets a request be signed with both keys", async () => {
    const old = await createProducer();
    const present = await rotate(old);
    const at = { id: "both" };
    const [one, two] = [old, present].map((signer) => signHeaders(signer, BODY, at)["webhook-signature"]);
    const headers = { ...signHeaders(present, BODY, at), "webhook-signature": `${one} v1a,AAAA ${two}` };
    await expectStatus(202, send("/v1/events", BODY, headers));
  });
});

describe("a signature is worth what a publish key of its source is", () => {
  test("its allow-list holds, and so does every later change of it", async () => {
    const producer = await createProducer({ allowed_event_types: ["order.*"] });
    const cart = BODY.replace("order.created", "cart.created");
    expect(await expectStatus(403, publish(producer, {}, cart))).toMatchObject({ code: "event_type_not_allowed" });
    await expectStatus(202, publish(producer));
    const path = `/v1/sources/${producer.sourceId}`;
    await expectStatus(200, producer.tenant.admin.call("PATCH", path, { allowed_event_types: ["cart.*"] }));
    await expectStatus(403, publish(producer));
    await expectStatus(202, publish(producer, {}, cart));
  });

  test("it publishes for its own source, named or not, and for no other", async () => {
    const producer = await createProducer();
    for (const source of ["shop", producer.sourceId]) {
      await expectStatus(202, publish(producer, {}, BODY.replace("{", `{"source": "${source}", `)));
    }
    const other = BODY.replace("{", '{"source": "orders", ');
    expect(await expectStatus(403, publish(producer, {}, other))).toMatchObject({ code: "forbidden" });
  });

  test("what is wrong with a signed request is told to whoever signed it, and to nobody else", async () => {
    const producer = await createProducer();
    const bad = '{"type": "order created", "payload": 1, "colour": "red"}';
    expect(await expectStatus(422, publish(producer, {}, bad))).toMatchObject({ code: "validation_failed" });
    await expectStatus(400, publish(producer, {}, "{"));
    const xml = { ...signHeaders(producer, BODY), "Content-Type": "application/xml" };
    await expectStatus(415, send("/v1/events", BODY, xml));
    await expectStatus(401, publish({ ...producer, key: (await createProducer()).key }, {}, bad));
  });

  test("a body over the limit is refused before it is verified, the same for every source", async () => {
    const producer = await createProducer();
    const body = "x".repeat(1_536 * 1_024);
    for (const sourceId of [producer.sourceId, "src_0000000000000000"]) {
      const problem = await expectStatus(413, publish({ ...producer, sourceId }, {}, body));
      expect(problem).toMatchObject({ code: "payload_too_large" });
    }
  });

  test("with an Authorization header the token decides, and the signature means nothing", async () => {
    const producer = await createProducer();
    const headers = signHeaders(producer, BODY);
    const garbage = { ...headers, Authorization: "Bearer garbage" };
    expect(await expectStatus(401, send("/v1/events", BODY, garbage))).toMatchObject({ code: "unauthorized" });
    const body = BODY.replace("{", '{"source": "orders", ');
    const { id } = await expectStatus(202, producer.tenant.admin.post("/v1/events", body, headers));
    const event = await expectStatus(200, producer.tenant.admin.get(`/v1/events/${id}`));
    expect(event).toMatchObject({ source_id: producer.tenant.sourceId, idempotency_key: null });
  });
});
