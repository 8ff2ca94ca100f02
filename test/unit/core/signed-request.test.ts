import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isTimely,
  parseSignatureHeaders,
  rawSignedBody,
  signedIdempotencyKey,
} from "../../../src/core/signed-request.ts";

const SIGNATURE = `v1,${Buffer.alloc(32, 1).toString("base64")}`;
const GOOD = { id: "msg_1", timestamp: "1614265330", signature: SIGNATURE };

const parse = (changes: Partial<typeof GOOD>) => parseSignatureHeaders({ ...GOOD, ...changes });
const signaturesOf = (header: string) => {
  const parsed = parse({ signature: header });
  return parsed.ok ? parsed.value.signatures.map((bytes) => Buffer.from(bytes).toString("base64")) : parsed.error;
};

describe("webhook-id", () => {
  test.each(["a", "msg_p5jXN8AQM9LWM0D4loKWxJek", "0f8b-4c", "order/42:created", "x".repeat(128)])("%s", (id) => {
    expect(parse({ id })).toMatchObject({ ok: true, value: { id } });
  });

  // With a dot, `a.1` at 2 over `x` and `a` at 1 over `2.x` would be the same bytes.
  test.each(["", "a.b", "a b", "a, b", "é", "a\n", "\0", "x".repeat(129)])("%j is none", (id) => {
    expect(parse({ id })).toEqual({ ok: false, error: "malformed_id" });
  });
});

describe("webhook-timestamp", () => {
  test.each(["0", "1", "1614265330", "999999999999"])("%s", (timestamp) => {
    expect(parse({ timestamp })).toMatchObject({ ok: true, value: { timestampSeconds: Number(timestamp) } });
  });

  test.each(["", "01", "-1", "+1", "1.5", "1e9", " 1", "1, 1", "0x10", "1614265330000000", "NaN", "١"])(
    "%j is none",
    (timestamp) => expect(parse({ timestamp })).toEqual({ ok: false, error: "malformed_timestamp" }),
  );

  test("is taken up to five minutes from now, on either side", () => {
    const now = 1_614_265_330_000;
    for (const seconds of [-300, -299, 0, 300]) expect(isTimely(now / 1_000 + seconds, now)).toBe(true);
    for (const seconds of [-301, 301, -1e9, 1e9]) expect(isTimely(now / 1_000 + seconds, now)).toBe(false);
    expect(isTimely(now / 1_000 - 300, now + 1)).toBe(false);
  });
});

describe("webhook-signature", () => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
  const noise = fc.oneof(
    fc.constantFrom("v1", "v1,", "v2,AAAA", "v1a,AAAA", ",", "", "v1,====", `V1${SIGNATURE.slice(2)}`),
    fc.string({ maxLength: 20 }).map((text) => text.replaceAll(" ", "")),
  );

  test("gives back the signatures of v1 in their order, whatever stands between them", () => {
    const parts = fc.array(fc.oneof(bytes, noise), { maxLength: 8 });
    fc.assert(
      fc.property(parts, (given) => {
        const expected = given.flatMap((part) =>
          typeof part === "string" ? [] : [Buffer.from(part).toString("base64")],
        );
        const header = given.map((part) =>
          typeof part === "string" ? part : `v1,${Buffer.from(part).toString("base64")}`,
        );
        const isRead = expected.length > 0 && expected.length <= 4;
        expect(signaturesOf(header.join(" "))).toEqual(isRead ? expected : "malformed_signature");
      }),
      { seed: 4, numRuns: 500 },
    );
  });

  test("never throws, and holds one to four of 32 bytes or none", () => {
    const any = fc.oneof(
      fc.string({ maxLength: 2_000, unit: "binary" }),
      fc.array(fc.oneof(noise, fc.constant(SIGNATURE)), { maxLength: 40 }).map((parts) => parts.join(" ")),
      // One character of a good one changed.
      fc
        .tuple(fc.nat(SIGNATURE.length - 1), fc.string({ minLength: 1, maxLength: 1 }))
        .map(([at, character]) => SIGNATURE.slice(0, at) + character + SIGNATURE.slice(at + 1)),
    );
    fc.assert(
      fc.property(any, any, any, (id, timestamp, signature) => {
        const headers = parseSignatureHeaders({ ...GOOD, signature });
        parseSignatureHeaders({ id, timestamp, signature });
        if (!headers.ok) return;
        expect(headers.value.signatures.length).toBeGreaterThanOrEqual(1);
        expect(headers.value.signatures.length).toBeLessThanOrEqual(4);
        for (const one of headers.value.signatures) expect(one).toHaveLength(32);
      }),
      { seed: 4, numRuns: 1_000 },
    );
  });

  test("is bounded: more than four are refused, and more than 1,024 characters are not read", () => {
    expect(signaturesOf(Array.from({ length: 4 }, () => SIGNATURE).join(" "))).toHaveLength(4);
    expect(signaturesOf(Array.from({ length: 5 }, () => SIGNATURE).join(" "))).toBe("malformed_signature");
    expect(signaturesOf(SIGNATURE.padEnd(1_024, " "))).toHaveLength(1);
    expect(signaturesOf(SIGNATURE.padEnd(1_025, " "))).toBe("malformed_signature");
  });

  test("of another length or spelling is no signature", () => {
    const hmac = createHmac("sha512", "k").update("x").digest("base64");
    for (const text of [`v1,${hmac}`, `v1,${SIGNATURE.slice(3, -1)}`, `v1,${SIGNATURE.slice(3, -4)}`, "v1,AAAA"]) {
      expect(signaturesOf(text)).toBe("malformed_signature");
    }
  });
});

describe("what a raw publish signs", () => {
  const encode = (text: string) => new TextEncoder().encode(text);
  // Of few texts, so that two requests often differ in one place only.
  const line = fc.constantFrom("", "a", "aa", "?a", " ");
  const request = fc.record({ query: line, contentType: line, contentEncoding: line });
  const body = fc.constantFrom("", "a", "\n", "a\n", "\na", "a\na", "\n\n").map(encode);

  test("is the query, the content type and the content encoding, a line each, and the body's bytes", () => {
    const head = { query: "?type=a.b&ordering_key=x%3A1", contentType: "text/csv", contentEncoding: "" };
    const signed = rawSignedBody(head, Uint8Array.of(0xef, 0xbb, 0xbf, 0xff));
    expect(Buffer.from(signed).toString("latin1")).toBe("?type=a.b&ordering_key=x%3A1\ntext/csv\n\n\xef\xbb\xbf\xff");
  });

  test("differs for any two requests that differ", () => {
    fc.assert(
      fc.property(request, body, request, body, (oneHead, one, otherHead, other) => {
        const isSame = JSON.stringify([oneHead, [...one]]) === JSON.stringify([otherHead, [...other]]);
        const signedSame = Buffer.from(rawSignedBody(oneHead, one)).equals(rawSignedBody(otherHead, other));
        expect(signedSame).toBe(isSame);
      }),
      { seed: 4, numRuns: 5_000 },
    );
    // What stands at the end of one part never passes for the beginning of the next.
    const head = { query: "?a", contentType: "b", contentEncoding: "c" };
    expect(rawSignedBody(head, encode("d"))).not.toEqual(
      rawSignedBody({ ...head, contentEncoding: "" }, encode("c\nd")),
    );
  });
});

test("every event of a signed batch gets a key of its own, the first that of the request alone", () => {
  expect(signedIdempotencyKey("msg_1", 0)).toBe("msg_1");
  const keys = ["a", "b", "a1"].flatMap((id) => Array.from({ length: 500 }, (_, n) => signedIdempotencyKey(id, n)));
  expect(new Set(keys).size).toBe(1_500);
  expect(signedIdempotencyKey("x".repeat(128), 499).length).toBeLessThanOrEqual(256);
});
