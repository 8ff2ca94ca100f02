import { CloudEvent, HTTP } from "cloudevents";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cloudEventHeaders, encodeAttribute } from "../../../src/core/cloud-events.ts";
import { outboundBody, type OutboundEvent } from "../../../src/core/outbound.ts";

const SEED = { seed: 102, numRuns: 300 };

const EVENT: OutboundEvent = {
  id: "evt_01k7xq3v5h8m2n4p6r8t0v2w4y",
  type: "order.paid",
  sourceName: "shop_1-eu",
  schemaVersion: 2,
  orderingKey: null,
  causeEventId: null,
  occurredAt: Date.UTC(2026, 0, 31, 12, 0, 0, 5),
  relayedAt: Date.UTC(2026, 0, 31, 12, 0, 1),
  contentType: "application/json",
  contentEncoding: null,
  payloadIsJson: true,
  hopCount: 0,
};

test.each([
  ["application/cloudevents+json", "application/json"],
  ["Application/CloudEvents+JSON; charset=utf-8", "application/json"],
  ["application/cloudevents-batch+json", "application/json"],
  ["application/cloudevents+protobuf", "application/octet-stream"],
])("a payload that is itself a CloudEvent (%s) is not taken for the event", (contentType, sent) => {
  const forged = { specversion: "1.0", id: "1", source: "/sources/somebody-else", type: "order.refunded", data: 1 };
  const payload = new TextEncoder().encode(JSON.stringify(forged));
  const out = outboundBody("cloudevents", { ...EVENT, contentType }, payload);
  expect(out).toEqual({ body: payload, contentType: sent, contentEncoding: null });
  const headers = { ...Object.fromEntries(cloudEventHeaders(EVENT)), "content-type": out.contentType };
  const event = HTTP.toEvent({ headers, body: JSON.stringify(forged) });
  expect(event).toMatchObject({ source: "/sources/shop_1-eu", type: "order.paid" });
  expect(outboundBody("raw", { ...EVENT, contentType }, payload).contentType).toBe(contentType);
});

describe("the headers of a CloudEvent", () => {
  const always = [
    ["ce-specversion", "1.0"],
    ["ce-id", EVENT.id],
    ["ce-source", "/sources/shop_1-eu"],
    ["ce-type", "order.paid"],
    ["ce-time", "2026-01-31T12:00:00.005Z"],
  ];

  test("are these and no others without an ordering key; the content type is never among them", () => {
    expect(cloudEventHeaders(EVENT)).toEqual(always);
    expect(cloudEventHeaders({ ...EVENT, contentType: "text/csv", contentEncoding: "gzip" })).toEqual(always);
  });

  test("name the ordering key as the subject, percent-encoded", () => {
    const withKey = cloudEventHeaders({ ...EVENT, orderingKey: 'cart"7%41\\' });
    expect(withKey).toEqual([...always, ["ce-subject", "cart%227%2541\\"]]);
  });

  test("are an event for the CloudEvents SDK, whatever the ordering key, and valid by its schema", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\x21-\x7e]{1,256}$/), (orderingKey) => {
        const headers = Object.fromEntries(cloudEventHeaders({ ...EVENT, orderingKey }));
        const body = '{"a":1}';
        const event = HTTP.toEvent({ headers: { ...headers, "content-type": "application/json" }, body });
        if (!(event instanceof CloudEvent)) throw new Error("one event");
        expect(event.validate()).toBe(true);
        expect(event).toMatchObject({
          specversion: "1.0",
          id: EVENT.id,
          source: "/sources/shop_1-eu",
          type: "order.paid",
          time: "2026-01-31T12:00:00.005Z",
          datacontenttype: "application/json",
          data: { a: 1 },
        });
        // The SDK leaves the percent-decoding that the binding asks for to its caller.
        expect(decodeURIComponent(event.subject!)).toBe(orderingKey);
      }),
      SEED,
    );
  });
});

describe("percent-encoding", () => {
  test("the specification's own example", () => {
    expect(encodeAttribute("Euro € 😀")).toBe("Euro%20%E2%82%AC%20%F0%9F%98%80");
  });

  test("encodes space, double quote, percent and what is no printable ASCII, and nothing else of ASCII", () => {
    const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
    const encoded = ascii.filter((character) => encodeAttribute(character) !== character);
    const controls = [...ascii.slice(0, 0x20), "\x7f"];
    expect(encoded.toSorted()).toEqual([...controls, " ", '"', "%"].toSorted());
  });

  test("one round of decoding gives any text back, and the value is always a header's", () => {
    const texts = fc.string({ unit: "binary", maxLength: 60 });
    fc.assert(
      fc.property(texts, (text) => {
        const value = encodeAttribute(text);
        expect(value).toMatch(/^[\x21\x23-\x7e]*$/);
        expect(value.replaceAll(/%[0-9A-F]{2}/g, "")).not.toContain("%");
        expect(decodeURIComponent(value)).toBe(text);
      }),
      SEED,
    );
  });

  test("a lone surrogate is no text, and breaks nothing", () => {
    expect(encodeAttribute("a\ud800b")).toBe("a%EF%BF%BDb");
  });
});

test("the body is the payload with its own content type and encoding, JSON or not", () => {
  const payload = Uint8Array.of(0xef, 0xbb, 0xbf, 0xff, 0x00);
  for (const payloadIsJson of [true, false]) {
    const event = { ...EVENT, payloadIsJson, contentType: "text/csv; charset=x", contentEncoding: "br" };
    const { body, contentType, contentEncoding } = outboundBody("cloudevents", event, payload);
    expect(body).toEqual(Uint8Array.of(0xef, 0xbb, 0xbf, 0xff, 0x00));
    expect([contentType, contentEncoding]).toEqual(["text/csv; charset=x", "br"]);
  }
});
