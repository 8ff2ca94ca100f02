import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { PayloadFormat } from "../../src/core/outbound.ts";
import { createEndpoint, createTenant, expectStatus, type TestTenant } from "./support/client.ts";
import { fetchApi } from "./support/conformance.ts";
import { startReceiver, type Received, type Receiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { isSignedBy, verifyJson } from "./support/signature.ts";

const relay = await sharedRelay();

interface Consumer {
  tenant: TestTenant;
  receiver: Receiver;
  secret: string;
}

/** A tenant with one endpoint of this format. */
async function withConsumer(format: PayloadFormat, use: (consumer: Consumer) => Promise<void>): Promise<void> {
  const receiver = await startReceiver();
  try {
    const tenant = await createTenant(relay.url);
    const { secret } = await createEndpoint(tenant, { url: receiver.url, payload_format: format });
    await use({ tenant, receiver, secret });
  } finally {
    await receiver.close();
  }
}

/** JSON texts that a parser and a writer would not give back as they were. */
const TEXTS: [name: string, text: string][] = [
  ["an integer past 2^53", "9007199254740993"],
  ["a decimal that is whole", "1.0"],
  ["exponents and a negative zero", "[1e400,1E-2,-0,100000000000000000000000.000]"],
  ["an escaped slash", '"https:\\/\\/example.com\\/"'],
  ["escapes that need none, and control characters", '"\\u0041\\u001B\\u0000\\ud83d\\ude00\\uD800"'],
  ["a key given twice", '{"a":1,"b":2,"a":3,"__proto__":{"c":4}}'],
  ["integer-like keys out of order", '{"10":1,"2":2,"1":3}'],
  ["odd white space", '{ "a" :\t[ 1 ,\r\n  2\n] ,\r"b":{ }}'],
  ["line and paragraph separators", '"\u2028\u2029"'],
  ["text beyond ASCII, composed and not", '"é e\u0301 日本 😀 \ufeff"'],
  ["null", "null"],
  ["an empty text", '""'],
];
const ALL = `{${TEXTS.map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(" ,\n")}}`;

/** What stands between `"payload":` and the envelope's last brace. */
function payloadBytes({ body }: Received): Buffer {
  const start = body.indexOf('"payload":') + '"payload":'.length;
  expect(body.at(-1)).toBe("}".charCodeAt(0));
  return body.subarray(start, -1);
}

async function readPayload({ adminKey }: TestTenant, eventId: string): Promise<Buffer> {
  const url = `${relay.url}/v1/events/${eventId}/payload`;
  const response = await fetchApi(url, { headers: { Authorization: `Bearer ${adminKey}` } });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

describe("the payload of an envelope is byte-identical to the one published", () => {
  test.each([...TEXTS, ["all of them together", ALL]])("%s", (_, text) =>
    withConsumer("envelope", async ({ tenant, receiver, secret }) => {
      const body = `\n{ "source":"orders" ,"payload" :\t${text}\r\n, "type": "t" }`;
      const event = await expectStatus(202, tenant.admin.post("/v1/events", body));
      const [request] = await receiver.waitFor(1);
      expect(payloadBytes(request!)).toEqual(Buffer.from(text));
      expect(verifyJson(secret, request!)).toMatchObject({ id: event.id, type: "t" });
      expect(await readPayload(tenant, event.id)).toEqual(Buffer.from(text));
    }),
  );

  test("through a batch, where all payloads of a request are stored together", () =>
    withConsumer("envelope", async ({ tenant, receiver, secret }) => {
      const events = TEXTS.map(([, text], i) => `{"type":"t${i}","source":"orders","payload": ${text} }`);
      await expectStatus(202, tenant.admin.post("/v1/events/batch", `{"events":[${events.join(" , ")}]}`));
      const requests = await receiver.waitFor(TEXTS.length);
      for (const [i, [, text]] of TEXTS.entries()) {
        const request = requests.find(({ headers }) => headers["x-webhook-event-type"] === `t${i}`);
        expect(payloadBytes(request!)).toEqual(Buffer.from(text));
        verifyJson(secret, request!);
      }
    }));

  test("through NDJSON", () =>
    withConsumer("envelope", async ({ tenant, receiver }) => {
      const inOneLine = TEXTS.filter(([, text]) => !/[\r\n]/.test(text));
      const lines = inOneLine.map(([, text], i) => `{"type":"t${i}","payload":${text},"source":"orders"}`);
      const headers = { "Content-Type": "application/x-ndjson" };
      await expectStatus(202, tenant.admin.post("/v1/events/batch", lines.join("\n"), headers));
      const requests = await receiver.waitFor(inOneLine.length);
      for (const [i, [, text]] of inOneLine.entries()) {
        const request = requests.find(({ headers }) => headers["x-webhook-event-type"] === `t${i}`);
        expect(payloadBytes(request!)).toEqual(Buffer.from(text));
      }
    }));

  test("published raw as application/json", () =>
    withConsumer("envelope", async ({ tenant, receiver, secret }) => {
      const text = ` ${ALL}\n`;
      await expectStatus(202, tenant.admin.post("/v1/events/raw?type=t&source=orders", text));
      const [request] = await receiver.waitFor(1);
      expect(payloadBytes(request!)).toEqual(Buffer.from(text));
      verifyJson(secret, request!);
    }));
});

const GZIPPED = gzipSync('{"a":1.0}');
const NOT_UTF8 = Buffer.concat([
  Buffer.from([0xef, 0xbb, 0xbf]),
  Buffer.from('{"a":"'),
  Buffer.from([0xff, 0xc0, 0x80]),
]);
const BINARY = Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256));
const BODIES: [name: string, body: Buffer, contentType: string, contentEncoding: string | undefined][] = [
  ["a BOM and invalid UTF-8", NOT_UTF8, "application/json", undefined],
  ["a gzip body", GZIPPED, "application/json", "gzip"],
  ["a form", Buffer.from("a=1&b=%20x+y&c=%FF&a=2"), "application/x-www-form-urlencoded", undefined],
  ["every byte there is", BINARY, "application/octet-stream", undefined],
  ["text in another charset", Buffer.from([0xe9, 0x0d, 0x0a]), 'text/plain; charset="iso-8859-1"', undefined],
  ["an empty body", Buffer.alloc(0), "text/plain", undefined],
];

describe.each(["raw", "cloudevents"] as const)("to %s the bytes go with type and encoding as published", (format) => {
  test.each(BODIES)("%s", (_, body, contentType, contentEncoding) =>
    withConsumer(format, async ({ tenant, receiver, secret }) => {
      const event = await expectStatus(202, publishRaw(tenant, body, contentType, contentEncoding));
      const [request] = await receiver.waitFor(1);
      expect(request!.body).toEqual(body);
      expect(request!.headers["content-type"]).toBe(contentType);
      expect(request!.headers["content-encoding"]).toBe(contentEncoding);
      expect(request!.headers["content-length"]).toBe(String(body.length));
      expect(isSignedBy(secret, request!)).toBe(true);
      expect(await readPayload(tenant, event.id)).toEqual(body);
    }),
  );

  test("a body without a content type counts as bytes", () =>
    withConsumer(format, async ({ tenant, receiver }) => {
      const response = await fetchApi(`${relay.url}/v1/events/raw?type=t&source=orders`, {
        method: "POST",
        headers: { Authorization: `Bearer ${tenant.adminKey}` },
        body: new Uint8Array(BINARY),
      });
      expect(response.status).toBe(202);
      const [request] = await receiver.waitFor(1);
      expect(request!.body).toEqual(BINARY);
      expect(request!.headers["content-type"]).toBe("application/octet-stream");
    }));

  test("a JSON payload published with its fields around it", () =>
    withConsumer(format, async ({ tenant, receiver, secret }) => {
      await expectStatus(202, tenant.admin.post("/v1/events", `{"type":"t","source":"orders","payload":${ALL}}`));
      const [request] = await receiver.waitFor(1);
      expect(request!.body).toEqual(Buffer.from(ALL));
      expect(request!.headers["content-type"]).toBe("application/json");
      expect(isSignedBy(secret, request!)).toBe(true);
    }));
});

describe("an envelope carries what is not JSON as base64, with its type and encoding", () => {
  const bodies: typeof BODIES = [
    ...BODIES,
    ["JSON behind a BOM", Buffer.from('\ufeff{"a":1}'), "application/json", undefined],
    ["JSON that is cut off", Buffer.from('{"a":'), "application/json", undefined],
    ["JSON that does not say so", Buffer.from('{"a":1}'), "text/plain", undefined],
  ];
  test.each(bodies)("%s", (_, body, contentType, contentEncoding) =>
    withConsumer("envelope", async ({ tenant, receiver, secret }) => {
      await expectStatus(202, publishRaw(tenant, body, contentType, contentEncoding));
      const [request] = await receiver.waitFor(1);
      const envelope = verifyJson(secret, request!);
      expect(envelope).not.toHaveProperty("payload");
      expect(envelope.payload_content_type).toBe(contentType);
      expect(envelope.payload_content_encoding).toBe(contentEncoding);
      expect(Buffer.from(envelope.payload_base64, "base64")).toEqual(body);
      expect(request!.headers["content-type"]).toBe("application/json");
      expect(request!.headers["content-encoding"]).toBeUndefined();
    }),
  );
});

test("a payload of exactly the limit passes, one byte more is refused, whatever way it comes", () =>
  withConsumer("raw", async ({ tenant, receiver }) => {
    const limit = 262_144;
    const fits = Buffer.from(JSON.stringify("x".repeat(limit - 2)));
    const tooLarge = Buffer.from(JSON.stringify("x".repeat(limit - 1)));
    const inBody = (payload: Buffer) => `{"type":"t","source":"orders","payload":${payload}}`;
    await expectStatus(202, publishRaw(tenant, fits, "application/json", undefined));
    await expectStatus(202, tenant.admin.post("/v1/events", inBody(fits)));
    const requests = await receiver.waitFor(2);
    expect(requests.map(({ body }) => body.equals(fits))).toEqual([true, true]);
    for (const refused of [
      publishRaw(tenant, tooLarge, "application/json", undefined),
      tenant.admin.post("/v1/events", inBody(tooLarge)),
    ]) {
      expect(await expectStatus(413, refused)).toMatchObject({ code: "payload_too_large" });
    }
    const batch = await expectStatus(202, tenant.admin.post("/v1/events/batch", `{"events":[${inBody(tooLarge)}]}`));
    expect(batch.results).toEqual([expect.objectContaining({ status: 413 })]);
  }));

function publishRaw({ admin }: TestTenant, body: Buffer, contentType: string, contentEncoding: string | undefined) {
  return admin.post("/v1/events/raw?type=t&source=orders", body, {
    "Content-Type": contentType,
    ...(contentEncoding !== undefined && { "Content-Encoding": contentEncoding }),
  });
}
