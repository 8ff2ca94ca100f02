import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isJson } from "../../../src/core/json-span.ts";
import {
  eventHeaders,
  outboundBody,
  signatureHeaders,
  VERSION,
  type OutboundEvent,
} from "../../../src/core/outbound.ts";

const SEED = { seed: 20_273, numRuns: 300 };
const DELIVERY = {
  eventId: "evt_01k7xq3v5h8m2n4p6r8t0v2w4y",
  endpointId: "ep_0123456789abcdef",
  replayNo: 0,
};

function event(over: Partial<OutboundEvent>): OutboundEvent {
  return {
    id: DELIVERY.eventId,
    type: "order.paid",
    sourceName: "shop",
    schemaVersion: 2,
    orderingKey: null,
    causeEventId: null,
    occurredAt: Date.UTC(2026, 0, 31, 12, 0, 0, 5),
    relayedAt: Date.UTC(2026, 0, 31, 12, 0, 1),
    contentType: "application/json",
    contentEncoding: null,
    payloadIsJson: true,
    hopCount: 0,
    ...over,
  };
}

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

const HEAD =
  '{"id":"evt_01k7xq3v5h8m2n4p6r8t0v2w4y","type":"order.paid","source":"shop",' +
  '"occurred_at":"2026-01-31T12:00:00.005Z","relayed_at":"2026-01-31T12:00:01.000Z","schema_version":2';

/** JSON texts that a parse and a stringify would change, and any others, with white space where it may stand. */
const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const jsonTexts = fc
  .tuple(
    space,
    fc.oneof(
      fc.json(),
      fc.constantFrom(
        "9007199254740993",
        "1.0",
        "-0",
        "1E400",
        '"\\/\\u001B\\ud800"',
        '"\u2028\u2029"',
        '{"a":1,"a":2}',
        '{"b":1, "a":[ ]}',
        '{"__proto__":1}',
        '",\\"payload\\":"',
      ),
    ),
    space,
  )
  .map((parts) => parts.join(""));

/** Visible ASCII, quotes and backslashes among it (`EVENT_KEY`). */
const orderingKeys = fc.stringMatching(/^[\x21-\x7e]{1,40}$/);

describe("envelope of JSON", () => {
  test("has its fields in the order of the contract, the optional ones only when set", () => {
    const set = { orderingKey: "cart-7", causeEventId: "evt_01k7xq3v5h8m2n4p6r8t0v2w4z" };
    const { body, contentType, contentEncoding } = outboundBody("envelope", event({}), encode("[1.0]"));
    expect(decode(body)).toBe(`${HEAD},"payload":[1.0]}`);
    expect([contentType, contentEncoding]).toEqual(["application/json", null]);
    expect(decode(outboundBody("envelope", event(set), encode("{}")).body)).toBe(
      `${HEAD},"ordering_key":"cart-7","cause_event_id":"${set.causeEventId}","payload":{}}`,
    );
  });

  test("is JSON, ends in the bytes as published, and says the rest of the event unchanged", () => {
    fc.assert(
      fc.property(jsonTexts, orderingKeys, (payload, orderingKey) => {
        const { body } = outboundBody("envelope", event({ orderingKey }), encode(payload));
        expect(isJson(body)).toBe(true);
        const tail = encode(`,"payload":${payload}}`);
        expect(body.subarray(-tail.length)).toEqual(tail);
        const { payload: read, ...fields } = JSON.parse(decode(body));
        expect(read).toEqual(JSON.parse(payload));
        expect(fields).toMatchObject({ id: DELIVERY.eventId, source: "shop", ordering_key: orderingKey });
      }),
      SEED,
    );
  });
});

describe("envelope of other bytes", () => {
  const other = { payloadIsJson: false, contentType: "application/x-www-form-urlencoded" };

  test("carries them in base64 with their content type, and their encoding only when they have one", () => {
    const plain = outboundBody("envelope", event(other), encode("a=1"));
    const typed = `${HEAD},"payload_base64":"YT0x","payload_content_type":"application/x-www-form-urlencoded"`;
    expect(decode(plain.body)).toBe(`${typed}}`);
    // The envelope itself is plain JSON, whatever its payload is packed in.
    expect([plain.contentType, plain.contentEncoding]).toEqual(["application/json", null]);
    const packed = outboundBody("envelope", event({ ...other, contentEncoding: "gzip" }), encode("a=1"));
    expect(decode(packed.body)).toBe(`${typed},"payload_content_encoding":"gzip"}`);
    expect(packed.contentEncoding).toBeNull();
  });

  test("gives back any bytes, and any content type a header can hold", () => {
    const contentTypes = fc.stringMatching(/^[\x20-\x7e]{1,40}$/);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), contentTypes, (payload, contentType) => {
        const { body } = outboundBody("envelope", event({ ...other, contentType }), payload);
        const fields = JSON.parse(decode(body));
        expect(new Uint8Array(Buffer.from(fields.payload_base64, "base64"))).toEqual(payload);
        expect(fields.payload_content_type).toBe(contentType);
        expect(fields).not.toHaveProperty("payload");
      }),
      SEED,
    );
  });
});

test("raw is the payload with its own content type and encoding, JSON or not", () => {
  const payload = Uint8Array.of(0xef, 0xbb, 0xbf, 0xff, 0x00);
  for (const payloadIsJson of [true, false]) {
    const raw = { payloadIsJson, contentType: "text/csv; charset=x", contentEncoding: "br" };
    const { body, contentType, contentEncoding } = outboundBody("raw", event(raw), payload);
    expect(body).toEqual(Uint8Array.of(0xef, 0xbb, 0xbf, 0xff, 0x00));
    expect([contentType, contentEncoding]).toEqual(["text/csv; charset=x", "br"]);
  }
});

describe("headers", () => {
  const startedAt = Date.UTC(2026, 0, 31, 12, 0, 2, 250);
  const always = [
    ["User-Agent", `Hooklane/${VERSION}`],
    ["X-Webhook-Source", "shop"],
    ["X-Webhook-Event-Id", DELIVERY.eventId],
    ["X-Webhook-Event-Type", "order.paid"],
    ["X-Webhook-Schema-Version", "2"],
    ["X-Webhook-Delivery-Id", "dlv_01k7xq3v5h8m2n4p6r8t0v2w4y0123456789abcdef"],
    ["X-Webhook-Attempt", "3"],
    ["X-Webhook-Occurred-At", "2026-01-31T12:00:00.005Z"],
    ["X-Webhook-Relayed-At", "2026-01-31T12:00:01.000Z"],
    ["X-Webhook-Attempt-Started-At", "2026-01-31T12:00:02.250Z"],
    ["X-Webhook-Hop", "1"],
  ];

  test("are these and no others when nothing optional is set", () => {
    expect(eventHeaders(event({}), DELIVERY, 3, startedAt)).toEqual(always);
  });

  test("name the cause and the ordering key when set", () => {
    const set = event({ causeEventId: "evt_01k7xq3v5h8m2n4p6r8t0v2w4z", orderingKey: 'cart"7' });
    expect(eventHeaders(set, DELIVERY, 3, startedAt)).toEqual([
      ...always,
      ["X-Webhook-Cause-Event-Id", "evt_01k7xq3v5h8m2n4p6r8t0v2w4z"],
      ["X-Webhook-Ordering-Key", 'cart"7'],
    ]);
  });

  test("count one hop more than the event had come through", () => {
    expect(eventHeaders(event({ hopCount: 2 }), DELIVERY, 3, startedAt)).toContainEqual(["X-Webhook-Hop", "3"]);
  });

  test("the signed id is one for all replays of a delivery, the delivery id is not", () => {
    const replay = { ...DELIVERY, replayNo: 4 };
    const signed = [
      ["webhook-id", "msg_01k7xq3v5h8m2n4p6r8t0v2w4y0123456789abcdef"],
      ["webhook-timestamp", "1769860802"],
      ["webhook-signature", "v1,a v1,b"],
    ];
    expect(signatureHeaders(DELIVERY, 1_769_860_802, "v1,a v1,b")).toEqual(signed);
    expect(signatureHeaders(replay, 1_769_860_802, "v1,a v1,b")).toEqual(signed);
    expect(eventHeaders(event({}), replay, 3, startedAt)).not.toContainEqual(always[5]);
  });
});
