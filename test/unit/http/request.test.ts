import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import { readJson, readQuery } from "../../../src/http/request.ts";

const LIMIT_BYTES = 65_536;

const app = new Hono()
  .post("/", async (c) => c.json({ read: await readJson(c) }))
  .get("/", (c) => c.json({ read: readQuery(c) }))
  .onError((error, c) => c.json({ code: error instanceof AppError ? error.code : String(error) }));

async function post(body: string | Uint8Array<ArrayBuffer> | ReadableStream | null): Promise<unknown> {
  const response = await app.request("/", { method: "POST", body, duplex: "half" } as RequestInit);
  return response.json();
}

describe("readJson", () => {
  test("no body is an empty object", async () => {
    expect(await post(null)).toEqual({ read: {} });
    expect(await post("")).toEqual({ read: {} });
  });

  test("a leading BOM is passed over", async () => {
    expect(await post('\ufeff{"a":1}')).toEqual({ read: { a: 1 } });
  });

  test.each(["{", "{'a':1}", '{"a":1}x', " "])("%j is malformed JSON", async (text) => {
    expect(await post(text)).toEqual({ code: "invalid_json" });
  });

  test("bytes that are not UTF-8 are refused, not replaced", async () => {
    expect(await post(new Uint8Array([0x22, 0xff, 0x22]))).toEqual({ code: "invalid_utf8" });
  });

  test("64 KiB are read, a byte more is refused", async () => {
    const text = JSON.stringify("a".repeat(LIMIT_BYTES - 2));
    expect(await post(text)).toEqual({ read: "a".repeat(LIMIT_BYTES - 2) });
    expect(await post(`${text} `)).toEqual({ code: "request_too_large" });
  });

  test("a body without a length is read no further than the limit", async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1024;
        controller.enqueue(new Uint8Array(1024).fill(0x20));
      },
    });
    expect(await post(endless)).toEqual({ code: "request_too_large" });
    expect(pulled).toBeLessThan(2 * LIMIT_BYTES);
  });
});

describe("the nesting of a body", () => {
  const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;

  test("may be 128 deep, and no deeper", async () => {
    expect(await post(nested(128))).toHaveProperty("read");
    expect(await post(nested(129))).toEqual({ code: "validation_failed" });
    expect(await post("[".repeat(LIMIT_BYTES))).toEqual({ code: "validation_failed" });
  });

  test("inside a text is no nesting", async () => {
    expect(await post(JSON.stringify({ a: "[".repeat(1_000) }))).toEqual({ read: { a: "[".repeat(1_000) } });
  });
});

test("a field given twice is refused, however deep it lies", async () => {
  expect(await post('{"name":"a","name":"b"}')).toEqual({ code: "duplicate_field" });
  expect(await post('{"retry_policy":{"jitter":0,"\\u006aitter":1}}')).toEqual({ code: "duplicate_field" });
});

describe("readQuery", () => {
  test("parameters come decoded, whatever their name", async () => {
    const response = await app.request("/?a=%20b&__proto__=1");
    expect(await response.text()).toBe('{"read":{"a":" b","__proto__":"1"}}');
  });

  test("a parameter given twice is refused", async () => {
    expect(await (await app.request("/?a=1&a=1")).json()).toEqual({ code: "duplicate_field" });
  });
});
