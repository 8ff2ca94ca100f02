import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkHeaderName } from "../../../src/core/endpoint-headers.ts";
import { HEADER_PREFIX, isHeaderPrefix, repeatUnder } from "../../../src/core/header-prefix.ts";
import { eventHeaders, signatureHeaders } from "../../../src/core/outbound.ts";

const DELIVERY = { eventId: "evt_01k7xq3v5h8m2n4p6r8t0v2w4y", endpointId: "ep_0123456789abcdef", replayNo: 0 };
const OWN = [
  ...signatureHeaders(DELIVERY, 1_769_860_802, "v1,a v1,b"),
  ...eventHeaders(
    {
      id: DELIVERY.eventId,
      type: "order.paid",
      sourceName: "shop",
      schemaVersion: 2,
      orderingKey: "cart-7",
      causeEventId: "evt_01k7xq3v5h8m2n4p6r8t0v2w4z",
      occurredAt: 5,
      relayedAt: 6,
      contentType: "application/json",
      contentEncoding: null,
      payloadIsJson: true,
      hopCount: 0,
    },
    DELIVERY,
    3,
    7,
  ),
];

describe("a prefix", () => {
  test.each(["svix-", "X-Acme-", "x-outpost-", "X-Convoy-", "a1-b2-c3-", "ab-", `${"a".repeat(31)}-`])(
    "%s may be one",
    (prefix) => expect(isHeaderPrefix(prefix)).toBe(true),
  );
  test.each([
    ["nothing", ""],
    ["a hyphen", "-"],
    ["what everybody has", "X-"],
    ["no hyphen at its end", "X-Acme"],
    ["two hyphens", "X--Acme-"],
    ["an underscore", "x_acme-"],
    ["a space", "x acme-"],
    ["a line break", "x-acme-\n"],
    ["a letter that is not ASCII", "x-é-"],
    ["33 characters", `${"a".repeat(32)}-`],
    ["the relay's own", "webhook-"],
    ["the relay's own in capitals", "X-WEBHOOK-"],
    ["a part of the relay's own", "X-Webhook-Acme-"],
    ["CloudEvents'", "ce-"],
    ["Cloudflare's", "CF-"],
    ["a proxy's", "X-Forwarded-"],
    ["the body's", "Content-"],
  ])("%s is none", (_, prefix) => expect(isHeaderPrefix(prefix)).toBe(false));

  test("makes no name that an endpoint is denied, nor one that is no header", () => {
    const words = fc.oneof(
      fc.constantFrom(
        "x",
        "webhook",
        "ce",
        "cf",
        "content",
        "proxy",
        "forwarded",
        "keep",
        "http2",
        "max",
        "real",
        "true",
      ),
      fc.stringMatching(/^[A-Za-z0-9]{1,6}$/),
    );
    const prefixes = fc.array(words, { minLength: 1, maxLength: 4 }).map((some) => `${some.join("-")}-`);
    fc.assert(
      fc.property(prefixes, (prefix) => {
        if (!isHeaderPrefix(prefix)) return;
        const repeated = repeatUnder(prefix, OWN);
        for (const [name] of repeated) expect(checkHeaderName(name)).toEqual({ ok: true, value: undefined });
        // Nor two of one name, nor one of the relay's own.
        const names = [...OWN, ...repeated].map(([name]) => name.toLowerCase());
        expect(new Set(names).size).toBe(names.length);
        // What it denies is what is under it: it takes in no reserved prefix as a whole, and so no everyday one.
        expect(checkHeaderName("X-Team", prefix).ok).toBe(true);
        expect(checkHeaderName(`${prefix}anything`, prefix.toUpperCase()).ok).toBe(false);
      }),
      { seed: 14, numRuns: 2_000 },
    );
  });

  test("of a megabyte is refused as fast as any", () => {
    for (const text of ["a".repeat(1_000_000), "a-".repeat(500_000), `${"-".repeat(1_000_000)}`]) {
      expect(HEADER_PREFIX.test(text)).toBe(false);
    }
  });
});

test("under a prefix go the signature's and the event's headers, each with its value, and not the count of hops", () => {
  expect(repeatUnder("X-Acme-", OWN)).toEqual([
    ["X-Acme-id", "msg_01k7xq3v5h8m2n4p6r8t0v2w4y0123456789abcdef"],
    ["X-Acme-timestamp", "1769860802"],
    ["X-Acme-signature", "v1,a v1,b"],
    ["X-Acme-Source", "shop"],
    ["X-Acme-Event-Id", DELIVERY.eventId],
    ["X-Acme-Event-Type", "order.paid"],
    ["X-Acme-Schema-Version", "2"],
    ["X-Acme-Delivery-Id", "dlv_01k7xq3v5h8m2n4p6r8t0v2w4y0123456789abcdef"],
    ["X-Acme-Attempt", "3"],
    ["X-Acme-Occurred-At", "1970-01-01T00:00:00.005Z"],
    ["X-Acme-Relayed-At", "1970-01-01T00:00:00.006Z"],
    ["X-Acme-Attempt-Started-At", "1970-01-01T00:00:00.007Z"],
    ["X-Acme-Cause-Event-Id", "evt_01k7xq3v5h8m2n4p6r8t0v2w4z"],
    ["X-Acme-Ordering-Key", "cart-7"],
  ]);
});

test("without a prefix nothing is repeated", () => {
  expect(repeatUnder(null, OWN)).toEqual([]);
});
