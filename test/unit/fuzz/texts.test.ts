import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeBase64, decodeBase64Url, encodeBase64, encodeBase64Url } from "../../../src/core/base64.ts";
import { encodeCursor, parseCursor } from "../../../src/core/cursor.ts";
import {
  compilePattern,
  isEventType,
  OPERATIONAL_EVENT_TYPES,
  parseEventTypePattern,
} from "../../../src/core/event-type.ts";
import { parseIdempotencyKeyHeader } from "../../../src/core/grammar.ts";
import { deliveryId, isEventId, isId, parseDeliveryId } from "../../../src/core/ids.ts";
import { keepResponseHeaders, partnerRequestId } from "../../../src/core/response-headers.ts";
import { parseSecretsKeys } from "../../../src/core/secret-box.ts";
import { decodeSigningSecret, encodeSigningSecret } from "../../../src/core/signature.ts";

const RUNS = { seed: 20261201, numRuns: 2_000 };
const soup = (letters: string, maxLength: number) => fc.string({ unit: fc.constantFrom(...letters), maxLength });
const isOneOf = (letters: string) => (letter: string) => letters.includes(letter);
const WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

describe("event types and patterns", () => {
  /** Letter by letter, as the grammar is told in the contract. */
  function isDotted(text: string, mayBeStar: boolean): boolean {
    if (text.length > 128) return false;
    return text
      .split(".")
      .every((part) => (mayBeStar && part === "*") || (part !== "" && [...part].every(isOneOf(WORD))));
  }
  const text = fc.oneof(
    soup("a*._-é \n", 8),
    soup("ab.*", 140),
    soup("*.", 6).map((tail) => `hooklane.${tail}`),
    fc
      .array(fc.constantFrom("*", "delivery", "dead_letter", "endpoint", "disabled", "failing"), {
        minLength: 1,
        maxLength: 3,
      })
      .map((tail) => ["hooklane", ...tail].join(".")),
  );

  test("any text is a type, or a pattern, exactly when the grammar says so", () => {
    fc.assert(
      fc.property(text, (given) => {
        const isOperational = given.startsWith("hooklane.");
        expect(isEventType(given)).toBe(isDotted(given, false) && !isOperational);
        const parsed = parseEventTypePattern(given);
        expect(parsed).toEqual(
          !isDotted(given, true)
            ? { ok: false, error: "malformed_pattern" }
            : isOperational && !OPERATIONAL_EVENT_TYPES.some((type) => matches(given.split("."), type.split(".")))
              ? { ok: false, error: "no_such_operational_event" }
              : { ok: true, value: given },
        );
      }),
      RUNS,
    );
  });

  /** Segment by segment: a star takes one, the last one takes all that is left. */
  function matches([first, ...rest]: string[], type: string[]): boolean {
    if (first === undefined) return type.length === 0;
    if (type.length === 0 || (first !== "*" && first !== type[0])) return false;
    if (first === "*" && rest.length === 0) return true;
    return matches(rest, type.slice(1));
  }

  test("a pattern matches what a reader who goes segment by segment says it does", () => {
    const segments = (letters: string[]) => fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(segments(["a", "b", "*", "aa"]), segments(["a", "b", "aa"]), (pattern, type) => {
        expect(compilePattern(pattern.join("."))(type.join("."))).toBe(matches(pattern, type));
      }),
      RUNS,
    );
  });
});

describe("ids", () => {
  const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
  const body = fc.oneof(soup(DIGITS, 60), soup(`${DIGITS}ilouA.:\n`, 60));
  const sized = (length: number) =>
    fc.string({ unit: fc.constantFrom(...DIGITS.repeat(3), "i", "A"), minLength: length, maxLength: length });
  const isCrockford = (text: string) => [...text].every(isOneOf(DIGITS));

  test("any text is an id exactly when it is its prefix, and enough letters of the right kind", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("ten", "ep", "src", "evt", "dlv", "x"),
        fc.oneof(body, sized(16), sized(26)),
        (prefix, tail) => {
          const id = `${prefix}_${tail}`;
          expect(isId("ep", id)).toBe(prefix === "ep" && tail.length === 16 && isCrockford(tail));
          expect(isEventId(id)).toBe(prefix === "evt" && tail.length === 26 && isCrockford(tail) && tail < "8");
        },
      ),
      RUNS,
    );
  });

  test("a delivery's id is read back exactly or refused", () => {
    const digits = fc.string({ unit: fc.constantFrom(...DIGITS), minLength: 41, maxLength: 41 });
    const spelled = fc.tuple(fc.constantFrom(..."078z"), digits, soup("01za", 7)).map((parts) => parts.join(""));
    const tail = fc.oneof({ weight: 4, arbitrary: spelled }, sized(42), sized(48), body);
    fc.assert(
      fc.property(tail, (text) => {
        const parsed = parseDeliveryId(`dlv_${text}`);
        const canBe = text.length >= 42 && text.length <= 48 && isCrockford(text) && text < "8" && text[42] !== "0";
        expect(parsed.ok).toBe(canBe);
        if (parsed.ok) expect(deliveryId(parsed.value)).toBe(`dlv_${text}`);
      }),
      RUNS,
    );
  });
});

test("an Idempotency-Key header is what its quotes hold, or what stands there without any", () => {
  /** A reader that goes letter by letter; undefined for what is no key. */
  function unquote(header: string): string | undefined {
    const letters = [...header.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "")];
    if (letters[0] !== '"') return letters.join("");
    let key = "";
    for (let i = 1; i < letters.length; i++) {
      if (letters[i] === '"') return i === letters.length - 1 ? key : undefined;
      if (letters[i] === "\\" && !isOneOf('"\\')(letters[++i] ?? "x")) return undefined;
      key += letters[i];
    }
    return undefined;
  }
  const isKey = (key: string) => key.length >= 1 && key.length <= 256 && [...key].every((c) => c > " " && c < "\u007f");
  const header = fc.oneof(
    soup('"\\a ~é\t', 8),
    soup('a\\"', 6).map((inside) => `"${inside}"`),
    soup("ab", 300),
  );
  fc.assert(
    fc.property(header, (given) => {
      const key = unquote(given);
      const parsed = parseIdempotencyKeyHeader(given);
      expect([given, parsed.ok ? parsed.value : undefined]).toEqual([given, key && isKey(key) ? key : undefined]);
    }),
    RUNS,
  );
});

describe("what is encoded", () => {
  test("has one spelling: a text that decodes is what its bytes encode to", () => {
    const text = fc.oneof(soup("AQgw/+-_= \n", 12), fc.base64String());
    fc.assert(
      fc.property(text, (given) => {
        const plain = decodeBase64(given);
        expect(plain.ok).toBe(Buffer.from(given, "base64").toString("base64") === given);
        if (plain.ok) expect(encodeBase64(plain.value)).toBe(given);
        const url = decodeBase64Url(given);
        expect(url.ok).toBe(Buffer.from(given, "base64url").toString("base64url") === given);
        if (url.ok) expect(encodeBase64Url(url.value)).toBe(given);
        const secret = decodeSigningSecret(`whsec_${given}`);
        expect(secret.ok).toBe(plain.ok && given !== "");
        if (secret.ok) expect(encodeSigningSecret(secret.value)).toBe(`whsec_${given}`);
        expect(decodeSigningSecret(given).ok).toBe(false);
      }),
      RUNS,
    );
  });

  test("as a cursor reads back as itself or not at all", () => {
    const shape = ["number", "string"] as const;
    const cursor = fc.oneof(
      fc.json().map((json) => encodeBase64Url(new TextEncoder().encode(json))),
      fc.tuple(fc.jsonValue(), fc.jsonValue()).map((parts) => encodeCursor(parts as string[])),
      fc.tuple(fc.double(), fc.string({ unit: "binary", maxLength: 600 })).map(encodeCursor),
      soup("WzEsIngi-_=", 40),
    );
    fc.assert(
      fc.property(cursor, (text) => {
        const parsed = parseCursor(text, shape);
        if (!parsed.ok) return;
        expect(text.length).toBeLessThanOrEqual(512);
        expect(Number.isSafeInteger(parsed.value[0])).toBe(true);
        const again = parseCursor(encodeCursor(parsed.value), shape);
        if (again.ok) expect(again).toEqual(parsed);
        else expect(encodeCursor(parsed.value).length).toBeGreaterThan(512);
      }),
      RUNS,
    );
  });

  test("as keys of secrets is taken whole: named, 32 bytes each, no name twice", () => {
    const key = fc.uint8Array({ minLength: 31, maxLength: 33 }).map((bytes) => Buffer.from(bytes).toString("base64"));
    const entry = fc.tuple(fc.constantFrom("a", "b", "", "é", "a b", "x".repeat(33)), fc.oneof(key, soup("AQ=:,", 6)));
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 3 }), soup(" \n,:", 2), (entries, stray) => {
        const text = entries.map(([id, bytes]) => `${id}:${bytes}`).join(",") + stray;
        const parsed = parseSecretsKeys(text);
        if (!parsed.ok) return;
        expect(parsed.value.every(({ bytes }) => bytes.length === 32)).toBe(true);
        expect(new Set(parsed.value.map(({ id }) => id)).size).toBe(entries.length);
      }),
      { ...RUNS, numRuns: 500 },
    );
  });
});

describe("a receiver's headers", () => {
  const MARK = "s3cret";
  const secretName = fc
    .tuple(soup("xX-", 3), fc.constantFrom("Token", "SECRET", "api-key", "Session", "Cookie", "Set-Cookie"), fc.nat(1))
    .map(([before, word, proxy]) => {
      if (word.endsWith("ookie")) return word;
      return proxy === 1 ? `Proxy-${before}` : `${before}${word}`;
    });

  test("never show what stands under a name of secrets, whatever stands beside it", () => {
    const secret = fc
      .tuple(secretName, fc.string({ unit: "binary", maxLength: 20 }))
      .map(([name, more]): [string, string] => [name, MARK + more]);
    const other = fc.tuple(soup("abcx-", 6), fc.string({ unit: "binary", maxLength: 200 }));
    fc.assert(
      fc.property(fc.array(fc.oneof(secret, other), { maxLength: 20 }), fc.boolean(), (headers, success) => {
        const kept = keepResponseHeaders(headers, success);
        expect(kept).not.toContain(MARK);
        expect(new TextEncoder().encode(kept).length).toBeLessThanOrEqual(4_096);
        expect(Object.values(JSON.parse(kept)).every((value) => typeof value === "string")).toBe(true);
      }),
      RUNS,
    );
  });

  test("give a request id of visible ASCII, 256 characters at most, or none", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (value) => {
        expect(partnerRequestId(value) ?? "none").toMatch(/^[\x21-\x7e]{1,256}$/);
      }),
      RUNS,
    );
  });
});
