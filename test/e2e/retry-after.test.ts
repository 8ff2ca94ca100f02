import { expect, test } from "vitest";
import { createEndpoint, createTenant, publish } from "./support/client.ts";
import { firstAttempt } from "./support/first-attempt.ts";
import { withReceiver, type Handler } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

/** How long after the answer the next attempt is due. */
async function waitMs(header: string, delaySeconds: number, status = 503): Promise<number> {
  const retry_policy = { delays_seconds: [delaySeconds], jitter: 0 };
  const handler: Handler = (_, response) => void response.writeHead(status, { "Retry-After": header }).end();
  const { next_attempt_at, attempts } = await firstAttempt(relay.url, handler, { retry_policy });
  return Date.parse(next_attempt_at) - Date.parse(attempts[0].responded_at);
}

test.concurrent.each([
  "120abc",
  "-5",
  "1.5",
  "abc",
  "1e3",
  "0x10",
  "300, 400",
  "Tue, 99 Foo 2099 00:00:00 GMT",
  "2099",
])("Retry-After: %s changes nothing", async (header) => {
  // "2099" is 2,099 seconds, and shorter than the delay; a reader of dates would wait for the year.
  expect(await waitMs(header, 3600)).toBe(3_600_000);
});

test.concurrent.each([429, 503, 500, 404, 302])("Retry-After lengthens the delay after a %i", async (status) => {
  expect(await waitMs("7200", 60, status)).toBe(7_200_000);
});

test.concurrent("Retry-After as a date is waited for", async () => {
  const date = new Date(Math.ceil(Date.now() / 1000) * 1000 + 7_200_000);
  const retry_policy = { delays_seconds: [60], jitter: 0 };
  const headers = { "Retry-After": date.toUTCString() };
  const handler: Handler = (_, response) => void response.writeHead(503, headers).end();
  const { next_attempt_at } = await firstAttempt(relay.url, handler, { retry_policy });
  expect(next_attempt_at).toBe(date.toISOString());
});

test.concurrent("Retry-After is capped by what is left of max_age_seconds, with room for a last attempt", async () => {
  const retry_policy = { delays_seconds: [60], jitter: 0, max_age_seconds: 7200 };
  const headers = { "Retry-After": "99999999999999999999" };
  const handler: Handler = (_, response) => void response.writeHead(503, headers).end();
  const { next_attempt_at, scheduled_at } = await firstAttempt(relay.url, handler, { retry_policy });
  const ageMs = Date.parse(next_attempt_at) - Date.parse(scheduled_at);
  expect(ageMs).toBeLessThan(7_200_000);
  expect(ageMs).toBeGreaterThan(7_000_000);
});

test.concurrent.each<[string, () => string]>([
  ["3", () => "3"],
  ["an HTTP date", () => new Date(Math.ceil(Date.now() / 1000) * 1000 + 3_000).toUTCString()],
])("Retry-After as %s keeps the next request back for three seconds", (_, header) =>
  withReceiver(async (receiver) => {
    let given = "";
    receiver.handle(({ n }, response) => {
      if (n === 1) response.writeHead(503, { "Retry-After": (given = header()) }).end();
      else response.end();
    });
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [0.05] } });
    await publish(tenant);
    const [first, second] = await receiver.waitFor(2);
    expect(second!.at).toBeGreaterThanOrEqual(given === "3" ? first!.at + 3_000 : Date.parse(given));
  }),
);
