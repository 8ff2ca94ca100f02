import { request } from "node:http";
import { beforeAll, describe, expect, test } from "vitest";
import { createClient, createTenant, eventually, expectStatus, publish, type TestTenant } from "./support/client.ts";
import { OPERATOR_TOKEN, sharedRelay } from "./support/relay-process.ts";
import { signHeaders } from "./support/signer.ts";
import { DOCUMENT } from "./support/walk.ts";

const relay = await sharedRelay();
let tenant: TestTenant;
beforeAll(async () => {
  tenant = await createTenant(relay.url);
});

/** Everyone there is: what is no route is so for all of them. */
const callers = () => [null, "garbage", tenant.adminKey, OPERATOR_TOKEN].map((token) => createClient(relay.url, token));

describe("an unknown route is 404, token or not", () => {
  test.each([
    ["GET", "/"],
    ["GET", "/v1"],
    ["GET", "/v1/nothing"],
    ["POST", "/v1/replay"],
    ["GET", "/v1/reports"],
    ["GET", "/v1/endpoints/ep_1/nothing"],
    ["GET", "/v1/events/a/b/c"],
    ["GET", "/v1/events/"],
    ["GET", "/v1//events"],
    ["GET", "/V1/events"],
    ["GET", "/v2/events"],
    ["PROPFIND", "/nothing"],
    ["HEAD", "/v1/nothing"],
  ])("%s %s", async (method, path) => {
    for (const client of callers()) {
      const { status, body, headers } = await client.call(method, path);
      expect(status).toBe(404);
      expect(headers.get("Content-Type")).toBe("application/problem+json");
      if (method === "HEAD") expect(body).toBe("");
      else
        expect(body).toMatchObject({ title: "Not found", code: "not_found", detail: expect.stringContaining("/docs") });
    }
  });
});

describe("a method that a route does not take is 405 with those it takes, token or not", () => {
  // `/metrics` is a route only where a relay has a token for it: test/workerd/metrics/scrape.test.ts.
  const always = Object.entries(DOCUMENT.paths).filter(([path]) => path !== "/metrics");
  const cases = always.flatMap(([path, methods]) =>
    ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]
      .filter((method) => methods[method.toLowerCase()] === undefined)
      // `raw` and `batch` can be read as the id of an event, `test` as that of a subscription.
      .filter((method) => DOCUMENT.paths[path.replace(/[^/]+$/, "{id}")]?.[method.toLowerCase()] === undefined)
      .map((method) => ({ method, path, takes: Object.keys(methods).map((method) => method.toUpperCase()) })),
  );
  test.each(cases)("$method $path", async ({ method, path, takes }) => {
    for (const client of callers()) {
      const { status, body, headers } = await client.call(method, path.replace("{id}", "ep_0"));
      expect({ status, code: body.code }).toEqual({ status: 405, code: "method_not_allowed" });
      const allow = headers.get("Allow")!.split(", ");
      expect(allow).toEqual(expect.arrayContaining(takes));
      expect(allow.includes("HEAD")).toBe(allow.includes("GET"));
    }
  });

  test("HEAD is answered as GET is, without the body", async () => {
    for (const path of ["/health", "/v1/events", `/v1/sources/${tenant.sourceId}`, "/v1/events/evt_0", "/docs"]) {
      const [get, head] = await Promise.all([tenant.admin.get(path), tenant.admin.call("HEAD", path)]);
      expect({ status: head.status, body: head.body }).toEqual({ status: get.status, body: "" });
    }
    expect((await createClient(relay.url, null).call("HEAD", "/v1/events")).status).toBe(401);
    const { status, headers } = await tenant.admin.call("HEAD", "/v1/endpoints/ep_0/pause");
    expect({ status, allow: headers.get("Allow") }).toEqual({ status: 405, allow: "POST" });
  });
});

describe("whatever stands in a path or body is answered with a problem", () => {
  // As they are: fetch would mend some of them.
  const raw = (method: string, path: string, body = ""): Promise<{ status: number; type: string; body: any }> =>
    new Promise((resolve, reject) => {
      const headers = { Authorization: `Bearer ${tenant.adminKey}`, "Content-Length": Buffer.byteLength(body) };
      const { hostname, port } = new URL(relay.url);
      const sent = request({ hostname, port, method, path, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("end", () => {
          const type = response.headers["content-type"] ?? "";
          const body = JSON.parse(Buffer.concat(chunks).toString());
          expect(response.headers["x-request-id"]).toBe(body.request_id);
          resolve({ status: response.statusCode!, type, body });
        });
      });
      sent.on("error", reject);
      sent.end(body);
    });

  test.each([
    ["a malformed percent-encoding", "%", 404],
    ["an encoding of no UTF-8", "%E0%A4%A", 404],
    ["an encoding of a lone surrogate", "%ED%A0%80", 404],
    ["a NUL", "%00", 404],
    ["a NUL behind an id", "ep_0000000000000000%00", 404],
    ["an encoded slash", "a%2Fb", 404],
    ["a quote and a comment", "'--", 404],
    ["8 KiB", "x".repeat(8_192), 414],
    ["a query that is malformed", "ep_0?%=%", 422],
    ["a query of 8 KiB", `ep_0?${"x".repeat(8_192)}=1`, 414],
    ["a query of a thousand parameters", `ep_0?${Array.from({ length: 1_000 }, (_, n) => `p${n}`).join("&")}`, 422],
  ])("%s as an id", async (_, id, status) => {
    for (const noun of ["endpoints", "events", "deliveries", "sources", "subscriptions", "api-keys"]) {
      const answer = await raw("GET", `/v1/${noun}/${id}`);
      expect({ noun, status: answer.status, type: answer.type }).toEqual({
        noun,
        status,
        type: "application/problem+json",
      });
      expect(JSON.stringify(answer.body).length).toBeLessThan(8_192);
    }
  });

  test.each([
    ["no JSON", "{", 400, "invalid_json"],
    ["JSON nested ten thousand deep", `${"[".repeat(10_000)}${"]".repeat(10_000)}`, 422, "validation_failed"],
    ["a list", "[]", 422, "validation_failed"],
    ["null", "null", 422, "validation_failed"],
    ["more than 64 KiB", `"${"x".repeat(65_536)}"`, 413, "request_too_large"],
    ["a prototype", '{"__proto__": {"url": "https://a.example"}}', 422, "validation_failed"],
  ])("%s as a body", async (_, body, status, code) => {
    for (const path of ["/v1/endpoints", "/v1/sources", "/v1/subscriptions", "/v1/api-keys"]) {
      const answer = await raw("POST", path, body);
      expect({ path, status: answer.status, code: answer.body.code }).toEqual({ path, status, code });
    }
  });
});

describe("one request id", () => {
  interface Line {
    level: string;
    event: string;
    request_id: string;
  }
  const lines = (): Line[] =>
    relay
      .printed()
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line));
  const lineOf = (requestId: string) =>
    eventually(async () => lines().find((line) => line.event === "request" && line.request_id === requestId));

  test("goes through answer, problem and log line; a caller's own is not taken over", async () => {
    const headers = { "X-Request-Id": "mine" };
    const path = "/v1/endpoints/ep_0000000000000000?reveal=secret-in-a-query";
    const refused = await tenant.admin.call("GET", path, undefined, headers);
    const requestId = refused.headers.get("X-Request-Id")!;
    expect(refused.body.request_id).toBe(requestId);
    expect(requestId).toMatch(/^req_[0-9a-z]{16}$/);
    expect(await lineOf(requestId)).toEqual({
      level: "info",
      event: "request",
      request_id: requestId,
      method: "GET",
      route: "/v1/endpoints/{id}",
      status: refused.status,
      duration_ms: expect.any(Number),
      tenant_id: refused.status === 422 ? null : tenant.id,
    });
  });

  test("each request has one line, with its tenant where there is one", async () => {
    const { admin } = tenant;
    const event = await publish(tenant);
    const nobody = createClient(relay.url, null);
    const answers = {
      read: await admin.get(`/v1/events/${event.id}`),
      published: await admin.post("/v1/events", { type: "t", source: "orders", payload: "payload-in-a-body" }),
      unauthorized: await nobody.get("/v1/events"),
      unknown: await nobody.get("/path-of-nothing"),
      wrong: await nobody.call("PROPFIND", "/v1/events"),
      health: await nobody.get("/health"),
      secret: await admin.get(`/v1/endpoints/${tenant.adminKey}`),
    };
    const seen = Object.fromEntries(
      await Promise.all(
        Object.entries(answers).map(async ([name, { headers }]) => {
          const id = headers.get("X-Request-Id")!;
          await lineOf(id);
          const found = lines().filter((line) => line.event === "request" && line.request_id === id);
          return [name, found] as const;
        }),
      ),
    );
    const line = (method: string, route: string | null, status: number, tenantId: string | null) => [
      expect.objectContaining({ method, route, status, tenant_id: tenantId }),
    ];
    expect(seen).toEqual({
      read: line("GET", "/v1/events/{id}", 200, tenant.id),
      published: line("POST", "/v1/events", 202, tenant.id),
      unauthorized: line("GET", "/v1/events", 401, null),
      unknown: line("GET", null, 404, null),
      wrong: line("other", null, 405, null),
      health: line("GET", "/health", 200, null),
      secret: line("GET", "/v1/endpoints/{id}", 404, tenant.id),
    });
    const printed = relay.printed();
    for (const text of [
      event.id,
      "payload-in-a-body",
      "secret-in-a-query",
      "path-of-nothing",
      tenant.adminKey,
      "PROPFIND",
    ]) {
      expect(printed).not.toContain(text);
    }
  });
});

test("GET /docs is one page that names every operation, runs nothing and loads nothing", async () => {
  const { body, headers } = await createClient(relay.url, null).get("/docs");
  expect(headers.get("Content-Type")).toMatch(/^text\/html/);
  expect(headers.get("Content-Security-Policy")).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/]+=*';/);
  for (const [path, methods] of Object.entries(DOCUMENT.paths)) {
    for (const method of Object.keys(methods)) expect(body).toContain(`${method.toUpperCase()} ${path}`);
  }
  expect(/<script|<link|<img|<iframe|@import|url\(|\son\w+=/i.exec(body)).toBeNull();
  const links = [...body.matchAll(/href="([^"]*)"/g)].map(([, link]) => link);
  expect(links.filter((link) => !link.startsWith("#"))).toEqual(["/openapi.json"]);
  expect(await expectStatus(200, tenant.admin.get("/docs"))).toBe(body);
});

describe("nothing is accepted and ignored", () => {
  const url = "http://127.0.0.1:9/a";

  test.each([
    ["a field", `{"url":"${url}","url":"${url}b"}`],
    ["a field spelled with an escape", `{"url":"${url}","\\u0075rl":"${url}b"}`],
    ["a header", `{"url":"${url}","headers":{"X-A":"1","X-A":"2"}}`],
    ["a part of a policy", `{"url":"${url}","retry_policy":{"max_attempts":1,"max_attempts":50}}`],
  ])("%s given twice is refused, not taken by its last value", async (_, body) => {
    expect(await tenant.admin.post("/v1/endpoints", body)).toMatchObject({
      status: 422,
      body: { code: "duplicate_field" },
    });
  });

  test("a deletion with a body that says something is refused", async () => {
    const { body: endpoint } = await tenant.admin.post("/v1/endpoints", { url });
    const path = `/v1/endpoints/${endpoint.id}`;
    await expectStatus(422, tenant.admin.call("DELETE", path, { dry_run: true }));
    await expectStatus(200, tenant.admin.get(path));
    await expectStatus(204, tenant.admin.call("DELETE", path, {}));
  });

  test("X-Tenant-Id may name the caller's own tenant and no other, by key and by signature", async () => {
    const other = await createTenant(relay.url);
    const named = (id: string) => ({ "X-Tenant-Id": id });
    for (const id of [other.id, "ten_0000000000000000", "x"]) {
      const refused = await tenant.admin.post("/v1/sources", { name: "elsewhere" }, named(id));
      expect(refused).toMatchObject({ status: 422, body: { errors: [{ path: "X-Tenant-Id" }] } });
    }
    const source = await expectStatus(201, tenant.admin.post("/v1/sources", { name: "signer" }, named(tenant.id)));
    const body = JSON.stringify({ type: "a", payload: 1 });
    const publishFor = (id: string) => {
      const headers = signHeaders({ sourceId: source.id, key: source.signing_key }, body);
      return createClient(relay.url, null).post("/v1/events", body, { ...headers, ...named(id) });
    };
    await expectStatus(422, publishFor(other.id));
    await expectStatus(202, publishFor(tenant.id));
    await expectStatus(
      422,
      createClient(relay.url, OPERATOR_TOKEN).call("GET", "/v1/tenants", undefined, named(tenant.id)),
    );
  });

  test("an Idempotency-Key where nothing reads it is refused", async () => {
    const answer = await tenant.admin.post("/v1/endpoints", { url }, { "Idempotency-Key": "one" });
    expect(answer).toMatchObject({ status: 422, body: { code: "not_supported" } });
  });
});
