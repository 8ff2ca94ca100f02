import { describe, expect, test } from "vitest";
import { encodeCursor } from "../../src/core/cursor.ts";
import { createApi, operatorToken } from "./support/api.ts";
import { createScene } from "./support/scene.ts";

const EVENT = { type: "a.b", source: "orders", payload: 1 };
const CONFIG_ROUTES = [
  ["POST", "/v1/sources"],
  ["PATCH", "/v1/sources/src_0000000000000000"],
  ["POST", "/v1/endpoints"],
  ["POST", "/v1/subscriptions"],
  ["POST", "/v1/api-keys"],
  ["POST", "/v1/deliveries/dlv_x/retry"],
] as const;

describe("what comes in is bounded before it is looked into", () => {
  test.each(["/v1/events", "/v1/deliveries/", "/health", "/nowhere/"])(
    "%s: a URL of 8,193 characters",
    async (path) => {
      const fill = (length: number) => {
        const start = `${path}${path.endsWith("/") ? "" : "?x="}`;
        return start + "x".repeat(length - `http://relay.test${start}`.length);
      };
      const api = createApi(null);
      expect(await api.get(fill(8_193))).toMatchObject({ status: 414, body: { code: "uri_too_long" } });
      expect((await api.get(fill(8_192))).status).not.toBe(414);
    },
  );

  test.each(CONFIG_ROUTES)("%s %s: a body nested 129 deep, or 32,000", async (method, path) => {
    const { tenant } = await createScene();
    for (const depth of [129, 32_000]) {
      const body = "[".repeat(depth) + "]".repeat(depth);
      const answer = await tenant.api.request(path, { method, body });
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ message: "is nested too deeply" }] } });
    }
  });

  test.each(CONFIG_ROUTES)("%s %s: a body of more than 64 KiB", async (method, path) => {
    const { tenant } = await createScene();
    const body = JSON.stringify({ name: "x".repeat(65_536) });
    expect((await tenant.api.request(path, { method, body })).body.code).toBe("request_too_large");
  });

  test("a field of a publish nested 130 deep is refused, also in a batch, where its neighbours are not", async () => {
    const { tenant } = await createScene();
    const deep = `{"type":"a.b","source":"orders","payload":1,"ordering_key":${"[".repeat(130)}${"]".repeat(130)}}`;
    expect((await tenant.api.request("/v1/events", { method: "POST", body: deep })).status).toBe(422);
    const batch = `{"events":[${deep},${JSON.stringify(EVENT)}]}`;
    const answer = await tenant.api.request("/v1/events/batch", { method: "POST", body: batch });
    expect(answer.body.results.map(({ status }: { status: number }) => status)).toEqual([422, 202]);
  });

  test("a token or tenant id of 60 KB is nobody's", async () => {
    const long = "x".repeat(60_000);
    expect((await createApi(long).get("/v1/events")).status).toBe(401);
    expect((await createApi(`hlk_0_${long}`).post("/v1/events", EVENT)).status).toBe(401);
    expect((await createApi(operatorToken, { "X-Tenant-Id": `ten_${long}` }).get("/v1/events")).status).toBe(404);
    const operator = createApi(operatorToken);
    expect((await operator.post("/v1/api-keys", { scope: "admin", tenant_id: long })).status).toBe(422);
  });

  test("an idempotency key with 60 KB of white space in it costs no time", async () => {
    const { tenant } = await createScene();
    const headers = { "Idempotency-Key": `a${" ".repeat(60_000)}b` };
    const answer = await tenant.api.request("/v1/events", { method: "POST", body: JSON.stringify(EVENT), headers });
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: "Idempotency-Key" }] } });
  });

  test("a long id in a path, and one that is no text, are ids of nothing", async () => {
    const { tenant } = await createScene();
    for (const id of ["x".repeat(8_000), "%E0%A4%A", "%00", "..%2f..", "%F0%9F%98%80", "'or'1'='1"]) {
      for (const noun of ["events", "deliveries", "sources", "endpoints", "subscriptions", "api-keys"]) {
        expect((await tenant.api.get(`/v1/${noun}/${id}`)).status).toBe(404);
      }
    }
  });

  test("a thousand query parameters get twenty errors, and a repeated one is named in short", async () => {
    const { tenant } = await createScene();
    const many = Array.from({ length: 1_000 }, (_, n) => `p${n}`).join("&");
    const unknown = await tenant.api.get(`/v1/deliveries?${many}`);
    expect(unknown.status).toBe(422);
    expect(unknown.body.errors).toHaveLength(20);
    const name = "n".repeat(3_000);
    const twice = await tenant.api.get(`/v1/deliveries?${name}&${name}`);
    expect(twice.body).toMatchObject({ code: "duplicate_field", errors: [{ path: "n".repeat(128) }] });
  });
});

describe("values out of their range are 422, whatever their size", () => {
  const policy = (retry_policy: object) => ["/v1/endpoints", { url: "https://a.example/", retry_policy }] as const;
  test.each([
    policy({ delays_seconds: Array.from({ length: 51 }, () => 1) }),
    policy({ delays_seconds: [] }),
    policy({ reject_statuses: Array.from({ length: 301 }, () => 400) }),
    policy({ same_error_classes: Array.from({ length: 6 }, () => "gone") }),
    policy({ max_attempts: 1.5 }),
    policy({ jitter: -0.1 }),
    ["/v1/endpoints", { url: `https://a.example/${"x".repeat(2_031)}` }],
    ["/v1/endpoints", { url: "https://a.example/", name: "n".repeat(129) }],
    ["/v1/sources", { name: "a", allowed_event_types: Array.from({ length: 101 }, () => "a.*") }],
    ["/v1/sources", { name: "a", allowed_event_types: Array.from({ length: 10_000 }, () => "") }],
    ["/v1/sources", { name: "a", allowed_event_types: ["a".repeat(129)] }],
    ["/v1/sources", { name: "a".repeat(60_000) }],
    ["/v1/events", { ...EVENT, type: "a".repeat(129) }],
    ["/v1/events", { ...EVENT, type: "a.".repeat(30_000) }],
    ["/v1/events", { ...EVENT, ordering_key: "k".repeat(257) }],
    ["/v1/events", { ...EVENT, occurred_at: `2026-01-01T00:00:00.${"0".repeat(60_000)}` }],
  ] as const)("%s %o", async (path, body) => {
    const { tenant } = await createScene();
    const answer = await tenant.api.post(path, body);
    expect(answer.status).toBe(422);
    expect(answer.body.errors.length).toBeLessThanOrEqual(20);
  });

  test.each(["1e400", "-1e400", "9007199254740993", "1e21", "-0", "0.1", "-1", '"1"', "true", "[]"])(
    "the number %s where a whole one from 1 is meant",
    async (number) => {
      const { tenant, endpointId } = await createScene();
      const send = (method: string, path: string, body: string) => tenant.api.request(path, { method, body });
      const event = `{"type":"a.b","source":"orders","payload":${number},"schema_version":${number}}`;
      expect((await send("POST", "/v1/events", event)).status).toBe(422);
      const endpoint = `/v1/endpoints/${endpointId}`;
      expect((await send("PATCH", endpoint, `{"timeout_ms":${number}}`)).status).toBe(422);
      expect((await send("PATCH", endpoint, `{"concurrency_cap":${number}}`)).status).toBe(422);
      expect((await send("PATCH", endpoint, `{"retry_policy":{"max_attempts":${number}}}`)).status).toBe(422);
    },
  );

  test.each(["NaN", "Infinity", "-Infinity", "0x10", "01", "1.", "+1"])("%s is no JSON at all", async (number) => {
    const { tenant } = await createScene();
    const body = `{"name":${number}}`;
    expect((await tenant.api.request("/v1/sources", { method: "POST", body })).body.code).toBe("invalid_json");
  });

  test.each(["limit=0", "limit=251", "limit=1e2", "limit=-1", "limit=+1", `limit=${"9".repeat(400)}`, "limit=1.0"])(
    "%s",
    async (query) => {
      const { tenant } = await createScene();
      expect((await tenant.api.get(`/v1/deliveries?${query}`)).status).toBe(422);
    },
  );

  test.each([
    "",
    "x",
    "A".repeat(513),
    btoa("[1]"),
    btoa('["a",1]'),
    btoa('[1e400,"a"]'),
    btoa("[".repeat(300)),
    btoa('[1,"a",2]'),
  ])("the cursor %s", async (cursor) => {
    const { tenant } = await createScene();
    for (const list of ["events", "deliveries", "sources", "endpoints", "subscriptions", "api-keys"]) {
      expect((await tenant.api.get(`/v1/${list}?cursor=${encodeURIComponent(cursor)}`)).status).toBe(422);
    }
  });

  test("a cursor of any number and text is a place to start from where its id could be the list's, else refused", async () => {
    const { tenant } = await createScene();
    const lists = {
      events: "evt",
      deliveries: "dlv",
      sources: "src",
      endpoints: "ep",
      subscriptions: "sub",
      "api-keys": "key",
    };
    for (const [list, prefix] of Object.entries(lists)) {
      for (const [number, text] of [
        [-1, ""],
        [Number.MAX_SAFE_INTEGER, "x".repeat(300)],
        [Number.MIN_SAFE_INTEGER, "\0"],
      ] as const) {
        const answer = (id: string) => tenant.api.get(`/v1/${list}?cursor=${encodeCursor([number, id])}`);
        expect((await answer(text)).status).toBe(422);
        // The cursor of deliveries holds an id of one.
        expect((await answer(`${prefix}_${text}`)).status).toBe(list === "deliveries" ? 422 : 200);
      }
    }
  });
});
