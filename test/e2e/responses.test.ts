import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { startReceiver, type Handler } from "./support/receiver.ts";
import { firstAttempt } from "./support/first-attempt.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

const deliverOnce = (handler: Handler, settings?: Record<string, unknown>) =>
  firstAttempt(relay.url, handler, settings);
const sha256 = (body: string | Buffer) => createHash("sha256").update(body).digest("hex");

describe.concurrent("a status is judged as the contract says", () => {
  const statuses: [expected: [outcome: string, error: string | null, delivery: string], statuses: number[]][] = [
    [
      ["success", null, "succeeded"],
      [200, 201, 202, 204, 206, 299],
    ],
    [
      ["transient", "http_3xx", "pending"],
      [300, 301, 302, 303, 304, 307, 308],
    ],
    [
      ["transient", "http_4xx", "pending"],
      [401, 403, 404, 408, 409, 418, 425, 499],
    ],
    [["transient", "rate_limited", "pending"], [429]],
    [
      ["transient", "http_5xx", "pending"],
      [500, 502, 503, 504, 529, 599],
    ],
    [
      ["rejected", "http_4xx", "dead_letter"],
      [400, 405, 406, 411, 413, 414, 415, 422, 431, 451],
    ],
    [["rejected", "gone", "dead_letter"], [410]],
    [
      ["rejected", "http_5xx", "dead_letter"],
      [501, 505],
    ],
    [["unreachable", "reset", "pending"], [520]],
    [
      ["unreachable", "connect", "pending"],
      [521, 523],
    ],
    [
      ["unreachable", "timeout", "pending"],
      [522, 524],
    ],
    [
      ["unreachable", "tls", "pending"],
      [525, 526],
    ],
    [["unreachable", "network", "pending"], [527]],
    [["unreachable", "dns", "pending"], [530]],
  ];
  const cases = statuses.flatMap(([[outcomeClass, errorClass, status], codes]) =>
    codes.map((code) => ({ code, outcomeClass, errorClass, status })),
  );
  test.each(cases)("$code is $outcomeClass ($errorClass), and the delivery is $status", async (given) => {
    const { code, outcomeClass, errorClass, status } = given;
    const delivery = await deliverOnce((_, response) => void response.writeHead(code).end());
    expect(delivery).toMatchObject({
      status,
      attempt_count: 1,
      last_status_code: code,
      last_error_class: errorClass,
      attempts: [{ status_code: code, outcome_class: outcomeClass, error_class: errorClass }],
    });
  });

  test("a policy's own reject_statuses replace the usual ones", async () => {
    const settings = { retry_policy: { delays_seconds: [3600], reject_statuses: [503] } };
    const unavailable = await deliverOnce((_, response) => void response.writeHead(503).end(), settings);
    expect(unavailable).toMatchObject({ status: "dead_letter", final_outcome: "rejected" });
    const badRequest = await deliverOnce((_, response) => void response.writeHead(400).end(), settings);
    expect(badRequest).toMatchObject({ status: "pending", attempts: [{ outcome_class: "transient" }] });
  });
});

describe.concurrent("a redirect is never followed", () => {
  test.each([301, 302, 303, 307, 308])("%i", async (code) => {
    const elsewhere = await startReceiver();
    try {
      const delivery = await deliverOnce((_, response) => {
        response.writeHead(code, { Location: `${elsewhere.url}/moved` }).end();
      });
      expect(delivery).toMatchObject({
        status: "pending",
        attempts: [{ status_code: code, outcome_class: "transient", error_class: "http_3xx" }],
      });
      expect(JSON.parse(delivery.attempts[0].response_headers_json)).toMatchObject({
        location: `${elsewhere.url}/moved`,
      });
      expect(elsewhere.received).toEqual([]);
    } finally {
      await elsewhere.close();
    }
  });
});

describe.concurrent("of an answer is kept", () => {
  test("the hash of its body, whatever bytes it has", async () => {
    const body = Buffer.from([0x00, 0xff, 0x7b, 0x0a, 0x00]);
    const delivery = await deliverOnce((_, response) => void response.end(body));
    expect(delivery.attempts[0]).toMatchObject({ outcome_class: "success", response_body_sha256: sha256(body) });
  });

  test("the hash of nothing when there is no body", async () => {
    const delivery = await deliverOnce((_, response) => void response.writeHead(204).end());
    expect(delivery.attempts[0]).toMatchObject({ response_body_sha256: sha256("") });
  });

  test("the hash of the body as it reads when it came compressed", async () => {
    const delivery = await deliverOnce((_, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" }).end(gzipSync("plain words"));
    });
    expect(delivery.attempts[0]).toMatchObject({ response_body_sha256: sha256("plain words") });
  });

  test("three headers of a success", async () => {
    const delivery = await deliverOnce((_, response) => {
      const headers = { "Content-Type": "text/plain", Server: "shop/1", "X-Request-Id": "r-1", "X-Other": "o" };
      response.writeHead(200, headers).end();
    });
    expect(JSON.parse(delivery.attempts[0].response_headers_json)).toEqual({
      "content-type": "text/plain",
      server: "shop/1",
      "x-request-id": "r-1",
    });
    expect(delivery.attempts[0].partner_request_id).toBe("r-1");
  });

  test("all headers of a failure, none of its secrets, 4 KB at most", async () => {
    const delivery = await deliverOnce((_, response) => {
      const headers = {
        "Set-Cookie": ["sid=s3cret", "b=s3cret"],
        "WWW-Authenticate": 'Basic realm="s3cret"',
        "X-Api-Key": "s3cret",
        "X-Why": "full",
        "X-Long": "l".repeat(5_000),
      };
      response.writeHead(500, headers).end();
    });
    const json: string = delivery.attempts[0].response_headers_json;
    expect(JSON.parse(json)).toMatchObject({ "set-cookie": "[redacted]", "x-api-key": "[redacted]", "x-why": "full" });
    expect(json).not.toContain("s3cret");
    expect(json.length).toBeLessThanOrEqual(4_096);
  });
});

test("three hundred kilobytes of headers are an answer like any other, and what counts of them is found", async () => {
  const delivery = await deliverOnce((_, response) => {
    const bulk = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`X-Bulk-${n}`, "b".repeat(1_000)]));
    response.writeHead(500, { ...bulk, "Retry-After": "86400", "X-Request-Id": "r".repeat(60_000) }).end();
  });
  const [attempt] = delivery.attempts;
  expect(attempt).toMatchObject({ outcome_class: "transient", status_code: 500, partner_request_id: "r".repeat(256) });
  expect(attempt.response_headers_json.length).toBeLessThanOrEqual(4_096);
  expect(JSON.parse(attempt.response_headers_json)).toMatchObject({ "retry-after": "86400" });
  const waitMs = Date.parse(delivery.next_attempt_at) - Date.parse(attempt.responded_at);
  expect(waitMs).toBeGreaterThanOrEqual(86_400_000);
});

test("the body of an answer can be read nowhere", async () => {
  const body = "a page of somebody's inside network";
  const handler: Handler = (_, response) => void response.writeHead(500).end(body);
  expect(JSON.stringify(await deliverOnce(handler))).not.toContain(body);
});
