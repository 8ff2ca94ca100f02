import { afterAll, describe, expect, test } from "vitest";
import { createClient, expectStatus, type Answer } from "./support/client.ts";
import { BODY, producersAt } from "./support/producers.ts";
import { OPERATOR_TOKEN, sharedRelay } from "./support/relay-process.ts";
import { signHeaders, signRawHeaders } from "./support/signer.ts";

const relay = await sharedRelay();
const { createProducer, createSigner, send, publish, eventsOf, expectNoKeyPrinted } = producersAt(relay);
afterAll(expectNoKeyPrinted);

/** A 401 whose words say nothing of the ledger: the same for every source. */
async function expectRefused(answer: Promise<Answer>): Promise<unknown> {
  const { request_id, ...problem } = await expectStatus(401, answer);
  expect(request_id).toMatch(/^req_/);
  expect(problem).toMatchObject({ code: "invalid_signature", status: 401 });
  return problem;
}

describe("what is not signed by a live key of the source is refused, and stored nowhere", () => {
  test("a changed body, id, timestamp or signature, another source's key, a source that is not there", async () => {
    const producer = await createProducer();
    const sibling = await createSigner(producer.tenant, { name: "crm" });
    const stranger = await createProducer();
    const gone = await createSigner(producer.tenant, { name: "gone" });
    await expectStatus(204, producer.tenant.admin.call("DELETE", `/v1/sources/${gone.sourceId}`));
    const ended = await createProducer();
    await expectStatus(202, publish(ended));
    const operator = createClient(relay.url, OPERATOR_TOKEN);
    await expectStatus(204, operator.call("DELETE", `/v1/tenants/${ended.tenant.id}`));

    const headers = signHeaders(producer, BODY);
    const nextSecond = String(Number(headers["webhook-timestamp"]) + 1);
    const signature = headers["webhook-signature"]!;
    const flipped = `v1,${signature[3] === "A" ? "B" : "A"}${signature.slice(4)}`;
    const refused = [
      send("/v1/events", BODY.replace("42", "43"), headers),
      send("/v1/events", `${BODY} `, headers),
      send("/v1/events", "", headers),
      send("/v1/events", BODY, { ...headers, "webhook-id": `${headers["webhook-id"]}x` }),
      send("/v1/events", BODY, { ...headers, "webhook-timestamp": nextSecond }),
      send("/v1/events", BODY, { ...headers, "webhook-signature": flipped }),
      send("/v1/events", BODY, { ...headers, "X-Webhook-Source": sibling.sourceId }),
      send("/v1/events", BODY, { ...headers, "X-Webhook-Source": stranger.sourceId }),
      send("/v1/events", BODY, { ...headers, "X-Webhook-Source": "src_0000000000000000" }),
      publish({ ...producer, key: sibling.key }),
      publish({ ...producer, key: stranger.key }),
      publish(gone),
      publish(ended),
    ];
    const problems = await Promise.all(refused.map(expectRefused));
    expect(new Set(problems.map((problem) => JSON.stringify(problem))).size).toBe(1);
    for (const owner of [producer, stranger]) expect(await eventsOf(owner)).toEqual([]);
    // Untouched, it is taken.
    await expectStatus(202, send("/v1/events", BODY, headers));
  });

  test("a timestamp more than five minutes off, on either side, known source or not", async () => {
    const producer = await createProducer();
    for (const skewSeconds of [-280, 280]) await expectStatus(202, publish(producer, { skewSeconds }));
    for (const skewSeconds of [-320, 320, -1e9]) {
      const known = await expectRefused(publish(producer, { skewSeconds }));
      const unknown = await expectRefused(publish({ ...producer, sourceId: "src_0000000000000000" }, { skewSeconds }));
      expect(known).toEqual(unknown);
      expect(known).toMatchObject({ detail: expect.stringContaining("webhook-timestamp") });
    }
    expect(await eventsOf(producer)).toHaveLength(2);
  });

  test.each([
    ["webhook-id", "", "webhook-id"],
    ["webhook-id", "a.b", "webhook-id"],
    ["webhook-timestamp", "", "webhook-timestamp"],
    ["webhook-timestamp", "2026-01-01T00:00:00Z", "webhook-timestamp"],
    ["webhook-signature", "v1,AAAA", "webhook-signature"],
    ["webhook-signature", "v1a,AAAA", "webhook-signature"],
    ["webhook-signature", Array.from({ length: 30 }, () => `v1,${"A".repeat(43)}=`).join(" "), "webhook-signature"],
    ["X-Webhook-Source", "shop", "X-Webhook-Source"],
    ["X-Webhook-Source", "", "X-Webhook-Source"],
  ])("%s: %j, and the answer says which", async (name, value, blamed) => {
    const producer = await createProducer();
    const problem = await expectRefused(send("/v1/events", BODY, { ...signHeaders(producer, BODY), [name]: value }));
    expect(problem).toMatchObject({ detail: expect.stringContaining(blamed) });
  });

  test("a raw publish with another query, content type or encoding, and a body on another route than it was signed for", async () => {
    const producer = await createProducer();
    const url = new URL(`${relay.url}/v1/events/raw?type=order.created&idempotency_key=k`);
    const body = Buffer.from('{"type":"t","payload":1}');
    const headers = signRawHeaders(producer, url, body, { "Content-Type": "application/json" });
    const raw = (search: string, changes: Record<string, string> = {}) =>
      send(`/v1/events/raw${search}`, body, { ...headers, ...changes });
    const single = signHeaders(producer, body);
    const signedHead = Buffer.from(`${url.search}\napplication/json\n\n`);
    const refused = [
      raw("?type=order.deleted&idempotency_key=k"),
      raw("?type=order.created&idempotency_key=other"),
      raw("?type=order.created"),
      raw("?idempotency_key=k&type=order.created"),
      raw(`${url.search}&ordering_key=x`),
      raw(url.search, { "Content-Type": "text/plain" }),
      raw(url.search, { "Content-Encoding": "gzip" }),
      send("/v1/events", body, headers),
      send("/v1/events/batch", body, { ...headers, "Content-Type": "application/x-ndjson" }),
      send(`/v1/events/raw${url.search}`, body, single),
    ];
    await Promise.all(refused.map(expectRefused));
    // The very bytes that were signed for raw are no body of another route.
    await expectStatus(400, send("/v1/events", Buffer.concat([signedHead, body]), headers));
    expect(await eventsOf(producer)).toEqual([]);
    await expectStatus(202, raw(url.search));
  });

  test("and it opens no other route", async () => {
    const producer = await createProducer();
    for (const [method, path] of [
      ["GET", "/v1/events"],
      ["POST", "/v1/sources"],
      ["POST", `/v1/sources/${producer.sourceId}/rotate-key`],
    ] as const) {
      const body = method === "GET" ? undefined : "{}";
      const answer = createClient(relay.url, null).call(method, path, body, signHeaders(producer, body ?? ""));
      expect(await expectStatus(401, answer)).toMatchObject({ code: "unauthorized" });
    }
  });
});

describe("a signed request that comes again makes no second event", () => {
  test("as it was, also many times at once", async () => {
    const producer = await createProducer();
    const headers = signHeaders(producer, BODY);
    const answers = await Promise.all(Array.from({ length: 20 }, () => send("/v1/events", BODY, headers)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array.from({ length: 19 }, () => 200), 202]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(await eventsOf(producer)).toHaveLength(1);
  });

  test("nor signed anew under the same id; the same id for another event is refused", async () => {
    const producer = await createProducer();
    const { id } = await expectStatus(202, publish(producer, { id: "order-42" }));
    expect(await expectStatus(200, publish(producer, { id: "order-42", skewSeconds: 9 }))).toMatchObject({ id });
    const other = publish(producer, { id: "order-42" }, BODY.replace("42", "43"));
    expect(await expectStatus(422, other)).toMatchObject({ code: "idempotency_key_reused" });
  });

  test("with an Idempotency-Key that was not signed: that header may only repeat what is", async () => {
    const producer = await createProducer();
    const headers = signHeaders(producer, BODY, { id: "signed" });
    await expectStatus(202, send("/v1/events", BODY, headers));
    const problem = await expectStatus(422, send("/v1/events", BODY, { ...headers, "Idempotency-Key": "mine" }));
    expect(problem).toMatchObject({ code: "validation_failed", errors: [{ path: "Idempotency-Key" }] });
    await expectStatus(200, send("/v1/events", BODY, { ...headers, "Idempotency-Key": '"signed"' }));

    const keyed = BODY.replace("{", '{"idempotency_key": "own", ');
    const own = signHeaders(producer, keyed);
    const { id } = await expectStatus(202, send("/v1/events", keyed, own));
    await expectStatus(422, send("/v1/events", keyed, { ...own, "Idempotency-Key": own["webhook-id"]! }));
    expect(await expectStatus(200, send("/v1/events", keyed, { ...own, "Idempotency-Key": "own" }))).toMatchObject({
      id,
    });
    // The event's own key decides: signed under another id it is the same event.
    expect(await expectStatus(200, send("/v1/events", keyed, signHeaders(producer, keyed)))).toMatchObject({ id });
    expect(await eventsOf(producer)).toHaveLength(2);
  });

  test("of a batch, whichever way it was first taken", async () => {
    const producer = await createProducer();
    const body = '{"events":[{"type":"a","payload":1},{"type":"no type!","payload":1},{"type":"a","payload":1}]}';
    const headers = signHeaders(producer, body);
    const first = await expectStatus(202, send("/v1/events/batch", body, headers));
    const again = await expectStatus(202, send("/v1/events/batch", body, headers));
    expect(first.results.map(({ status }: any) => status)).toEqual([202, 422, 202]);
    expect(again.results.map(({ status }: any) => status)).toEqual([200, 422, 200]);
    expect(again.results.map(({ id }: any) => id)).toEqual(first.results.map(({ id }: any) => id));
  });

  test("sent to the batch as one line of NDJSON, which it is", async () => {
    const producer = await createProducer();
    const headers = signHeaders(producer, BODY);
    const { id } = await expectStatus(202, send("/v1/events", BODY, headers));
    const ndjson = { ...headers, "Content-Type": "application/x-ndjson" };
    const { results } = await expectStatus(202, send("/v1/events/batch", BODY, ndjson));
    expect(results).toMatchObject([{ status: 200, id, duplicate: true }]);
    expect(await eventsOf(producer)).toHaveLength(1);
  });
});
