import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { boundResponseHeaders, keepResponseHeaders, partnerRequestId } from "../../../src/core/response-headers.ts";

const SEED = { seed: 20_263, numRuns: 200 };
const bytes = (text: string) => new TextEncoder().encode(text).length;
const kept = (headers: Iterable<[string, string]>, success = false): Record<string, string> =>
  JSON.parse(keepResponseHeaders(headers, success));

describe("what is kept", () => {
  test("a 2xx keeps three names and nothing else", () => {
    const headers = new Headers({
      "Content-Type": "text/plain",
      Server: "nginx",
      "X-Request-Id": "r-1",
      "Retry-After": "9",
      "X-Account": "42",
    });
    const three = { "content-type": "text/plain", server: "nginx", "x-request-id": "r-1" };
    expect(kept(headers.entries(), true)).toEqual(three);
    expect(keepResponseHeaders([], true)).toBe("{}");
  });

  test("a failure keeps all, names in lower case, repeated ones joined", () => {
    const headers: [string, string][] = [
      ["X-A", "1"],
      ["Via", "p"],
      ["x-a", "2"],
    ];
    expect(kept(headers)).toEqual({ "x-a": "1, 2", via: "p" });
  });

  test.each([
    "Set-Cookie",
    "Cookie",
    "Authorization",
    "WWW-Authenticate",
    "Proxy-Authenticate",
    "Proxy-Anything",
    "X-CSRF-Token",
    "Client-Secret",
    "X-Api-Key",
    "X-Session-Id",
  ])("%s is kept by name only", (name) => {
    expect(
      kept([
        [name, "hush"],
        [name, "hush too"],
      ]),
    ).toEqual({ [name.toLowerCase()]: "[redacted]" });
  });

  test("NUL and control characters never reach the store", () => {
    expect(kept([["x-a", "a\0b\u0007\r\nc\u0085"]])).toEqual({ "x-a": "abc" });
  });

  test("a name that objects treat specially is a name like any other", () => {
    expect(keepResponseHeaders([["__proto__", "x"]], false)).toBe('{"__proto__":"x"}');
  });
});

describe("the limit of 4,096 bytes", () => {
  test("what says most survives bulk that came before it", () => {
    const bulk = Array.from({ length: 80 }, (_, i): [string, string] => [`x-${i}`, "v".repeat(100)]);
    const headers: [string, string][] = [...bulk, ["cf-ray", "8f"], ["Retry-After", "120"]];
    const names = Object.keys(kept(headers));
    expect(names.slice(0, 3)).toEqual(["retry-after", "cf-ray", "x-0"]);
    expect(names.length).toBeLessThan(80);
  });

  test("a header too large is left out whole and takes no other with it", () => {
    expect(
      kept([
        ["server", "s".repeat(5_000)],
        ["x-a", "1"],
      ]),
    ).toEqual({ "x-a": "1" });
  });

  test("a text of exactly the limit is kept, one byte more is not", () => {
    const room = 4_096 - bytes('{"x-a":""}');
    expect(bytes(keepResponseHeaders([["x-a", "v".repeat(room)]], false))).toBe(4_096);
    expect(keepResponseHeaders([["x-a", "v".repeat(room + 1)]], false)).toBe("{}");
  });

  test("any headers give valid JSON within the limit, every value whole", () => {
    const value = fc.string({ unit: "binary", maxLength: 900 });
    const headers = fc.array(fc.tuple(fc.stringMatching(/^x-[a-d][0-9]{0,3}$/), value), { maxLength: 30 });
    fc.assert(
      fc.property(headers, fc.boolean(), (entries, success) => {
        const text = keepResponseHeaders(entries, success);
        expect(bytes(text)).toBeLessThanOrEqual(4_096);
        for (const [name, stored] of Object.entries<string>(JSON.parse(text))) {
          const sent = entries.filter(([n]) => n === name).map(([, v]) => v.replace(/\p{Cc}/gu, ""));
          expect(stored).toBe(sent.join(", "));
        }
      }),
      SEED,
    );
  });
});

describe("what is handed on of a receiver's headers", () => {
  const characters = (headers: [string, string][]) =>
    headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);

  test("is bounded, whatever their number and size, and holds what is always kept", () => {
    for (const bulk of [
      Array.from({ length: 5_000 }, (_, i): [string, string] => [`x-${i}`, ""]),
      Array.from({ length: 300 }, (_, i): [string, string] => [`x-${i}`, "v".repeat(1_000)]),
      [["x-a", "v".repeat(1_000_000)] as [string, string]],
    ]) {
      const headers = boundResponseHeaders([...bulk, ["Retry-After", "120"], ["x-request-id", "r".repeat(100_000)]]);
      expect(characters(headers)).toBeLessThan(21_000);
      expect(headers.length).toBeLessThan(2_100);
      expect(headers.slice(-2)).toEqual([
        ["Retry-After", "120"],
        ["x-request-id", "r".repeat(4_096)],
      ]);
    }
  });

  test("is all of them when they are few, in their order", () => {
    const few: [string, string][] = [
      ["x-b", "2"],
      ["date", "now"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ];
    expect(boundResponseHeaders(few)).toEqual(few);
  });

  test("makes no difference to what is kept of an ordinary answer", () => {
    const ordinary: [string, string][] = Array.from({ length: 60 }, (_, i) => [`x-${i}`, "v".repeat(150)]);
    expect(keepResponseHeaders(boundResponseHeaders(ordinary), false)).toBe(keepResponseHeaders(ordinary, false));
  });
});

describe("the partner's request id", () => {
  test("is what it sent", () => {
    expect(partnerRequestId("req_8f-2/ä:1")).toBe("req_8f-2/:1");
    expect(partnerRequestId("7f0c2c5e-req")).toBe("7f0c2c5e-req");
  });

  test("is null when absent or without a visible character", () => {
    for (const value of [null, "", " \t", "\0"]) expect(partnerRequestId(value)).toBeNull();
  });

  test("is cut at 256 characters", () => {
    expect(partnerRequestId("r".repeat(300))).toBe("r".repeat(256));
  });
});
