import { createHash } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createEndpoint, createTenant, publish, terminalDelivery } from "./support/client.ts";
import { firstAttempt, firstAttemptAt } from "./support/first-attempt.ts";
import { withReceiver, type Handler } from "./support/receiver.ts";
import { freePort, sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

const MIB = 1024 * 1024;
const sha256 = (body: string | Buffer) => createHash("sha256").update(body).digest("hex");

/** Writes zeros until `totalBytes` are written or the relay hangs up. Says how many bytes were handed over. */
async function writeZeros(response: ServerResponse, totalBytes: number): Promise<number> {
  const chunk = Buffer.alloc(65_536);
  const closed = once(response, "close").then(() => "closed");
  let written = 0;
  while (written < totalBytes && !response.destroyed) {
    written += chunk.length;
    if (!response.write(chunk) && (await Promise.race([once(response, "drain"), closed])) === "closed") break;
  }
  response.end();
  await closed;
  return written;
}

describe.concurrent("the deadline covers headers and body", () => {
  const timeout_ms = 3_000;

  test("a receiver that never answers is cut off", async () => {
    const delivery = await firstAttempt(relay.url, () => {}, { timeout_ms });
    expect(delivery).toMatchObject({ status: "pending", last_status_code: null, last_error_class: "timeout" });
    const [attempt] = delivery.attempts;
    expect(attempt).toMatchObject({
      outcome_class: "unreachable",
      error_class: "timeout",
      status_code: null,
      response_body_sha256: null,
      response_headers_json: null,
    });
    expect(attempt.latency_ms).toBeGreaterThanOrEqual(timeout_ms);
    expect(attempt.latency_ms).toBeLessThan(10 * timeout_ms);
  });

  test("headers at once and then a byte a second are cut at the deadline, the status kept", () =>
    withReceiver(async (receiver) => {
      const hungUp = new Promise<void>((resolve) =>
        receiver.handle((_, response) => {
          response.writeHead(200, { "X-Request-Id": "drip" });
          const drip = setInterval(() => response.write("."), 1_000);
          response.write(".");
          response.on("close", () => {
            clearInterval(drip);
            resolve();
          });
        }),
      );
      const delivery = await firstAttemptAt(relay.url, { url: receiver.url, timeout_ms });
      const [attempt] = delivery.attempts;
      expect(delivery).toMatchObject({ status: "pending", last_error_class: "timeout" });
      expect(attempt).toMatchObject({
        outcome_class: "unreachable",
        error_class: "timeout",
        status_code: 200,
        partner_request_id: "drip",
      });
      expect(attempt.latency_ms).toBeGreaterThanOrEqual(timeout_ms);
      expect(attempt.latency_ms).toBeLessThan(10 * timeout_ms);
      await hungUp;
    }));

  test("a slow answer within the deadline is a success", async () => {
    const handler: Handler = async (_, response) => {
      for (const part of ["a", "b", "c"]) {
        response.write(part);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      response.end();
    };
    const delivery = await firstAttempt(relay.url, handler, { timeout_ms: 30_000 });
    expect(delivery).toMatchObject({ status: "succeeded", attempts: [{ response_body_sha256: sha256("abc") }] });
  });
});

describe("an answer is read to 65,536 bytes and cut there", () => {
  test.each([
    [200, "succeeded", "success"],
    [500, "pending", "transient"],
  ])("100 MB with a %i are judged by the status, and the receiver is hung up on", async (code, status, outcome) => {
    let written = Promise.resolve(0);
    const handler: Handler = (_, response) => {
      response.writeHead(code, { "Content-Length": String(100 * MIB) });
      written = writeZeros(response, 100 * MIB);
    };
    const delivery = await withReceiver(async (receiver) => {
      receiver.handle(handler);
      const delivery = await firstAttemptAt(relay.url, { url: receiver.url });
      // What is more than the cap is in buffers on the way.
      expect(await written).toBeLessThan(50 * MIB);
      return delivery;
    });
    expect(delivery).toMatchObject({
      status,
      attempts: [{ status_code: code, outcome_class: outcome, response_body_sha256: sha256(Buffer.alloc(65_536)) }],
    });
  });

  test("an answer without end too", async () => {
    await withReceiver(async (receiver) => {
      let written = Promise.resolve(0);
      receiver.handle((_, response) => void (written = writeZeros(response, Infinity)));
      const delivery = await firstAttemptAt(relay.url, { url: receiver.url });
      expect(delivery).toMatchObject({ status: "succeeded" });
      expect(await written).toBeLessThan(50 * MIB);
    });
  });

  test("a small answer that unpacks to 100 MB is cut as it unpacks", async () => {
    const bomb = gzipSync(Buffer.alloc(100 * MIB));
    const delivery = await firstAttempt(relay.url, (_, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" }).end(bomb);
    });
    expect(delivery).toMatchObject({
      status: "succeeded",
      attempts: [{ response_body_sha256: sha256(Buffer.alloc(65_536)) }],
    });
  });

  test.each([65_535, 65_536, 65_537])("%i bytes are a whole answer", async (length) => {
    const body = Buffer.alloc(length, "x");
    const delivery = await firstAttempt(relay.url, (_, response) => void response.end(body));
    expect(delivery).toMatchObject({
      status: "succeeded",
      attempts: [{ response_body_sha256: sha256(body.subarray(0, 65_536)) }],
    });
  });
});

describe.concurrent("no complete answer is unreachable", () => {
  const unreachable = { outcome_class: "unreachable", status_code: null, response_body_sha256: null };
  const connection = expect.stringMatching(/^(connect|reset|network)$/);

  test("a refused connection", async () => {
    const delivery = await firstAttemptAt(relay.url, { url: `http://127.0.0.1:${await freePort()}` });
    expect(delivery).toMatchObject({ status: "pending", attempts: [{ ...unreachable, error_class: connection }] });
  });

  test("a host that has no address", async () => {
    const delivery = await firstAttemptAt(relay.url, { url: "http://no-such-host.invalid" });
    const error_class = expect.stringMatching(/^(dns|network)$/);
    expect(delivery).toMatchObject({ status: "pending", attempts: [{ ...unreachable, error_class }] });
  });

  test.each<[string, Handler]>([
    ["a connection that is reset", (_, response) => void response.socket!.resetAndDestroy()],
    ["a connection that is closed without a word", (_, response) => void response.socket!.end()],
    ["what is not HTTP", (_, response) => void response.socket!.end("SSH-2.0-OpenSSH_9.9\r\n")],
    ["headers that are cut off", (_, response) => void response.socket!.end("HTTP/1.1 200 OK\r\nContent-Ty")],
  ])("%s", async (_, handler) => {
    const delivery = await firstAttempt(relay.url, handler);
    expect(delivery).toMatchObject({ status: "pending", attempts: [{ ...unreachable, error_class: connection }] });
  });

  test("TLS that the receiver does not speak", () =>
    withReceiver(async (receiver) => {
      const delivery = await firstAttemptAt(relay.url, { url: receiver.url.replace("http:", "https:") });
      const error_class = expect.stringMatching(/^(tls|reset|network)$/);
      expect(delivery).toMatchObject({ status: "pending", attempts: [{ ...unreachable, error_class }] });
      expect(receiver.received).toEqual([]);
    }));

  const cutOff =
    (status: number, headers: Record<string, string>): Handler =>
    (_, response) => {
      response.writeHead(status, headers);
      response.write("the beginning", () => response.socket!.destroy());
    };
  test.each([
    [200, "of a promised length", { "Content-Length": "1000" }],
    [200, "in chunks", { "Transfer-Encoding": "chunked" }],
    [400, "of a promised length", { "Content-Length": "1000" }],
    [500, "in chunks", { "Transfer-Encoding": "chunked" }],
  ])("a %i whose body %s ends early, the status kept", async (code, _, headers) => {
    const delivery = await firstAttempt(relay.url, cutOff(code, headers));
    expect(delivery).toMatchObject({
      status: "pending",
      last_status_code: code,
      attempts: [{ outcome_class: "unreachable", error_class: "reset", status_code: code }],
    });
  });

  test("a body that cannot be unpacked", async () => {
    const delivery = await firstAttempt(relay.url, (_, response) => {
      response.writeHead(200, { "Content-Encoding": "gzip" }).end("not gzip");
    });
    expect(delivery).toMatchObject({
      status: "pending",
      attempts: [{ outcome_class: "unreachable", status_code: 200 }],
    });
  });
});

test("an unreachable receiver that comes back gets the event at the next attempt", () =>
  withReceiver(async (receiver) => {
    receiver.handle(({ n }, response) => void (n === 1 ? response.socket!.resetAndDestroy() : response.end()));
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [0.05] } });
    const { deliveries } = await publish(tenant);
    const delivery = await terminalDelivery(tenant, deliveries[0].id);
    expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 2 });
    expect(delivery.attempts.map(({ outcome_class }: any) => outcome_class)).toEqual(["unreachable", "success"]);
  }));
