import { readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { groupEnded, runningInGroup, runtimeOf } from "./support/process-group.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import {
  createStateDir,
  freePortToKeep,
  startRelayProcess,
  type RelayProcess,
  type StartOptions,
} from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

const started: RelayProcess[] = [];
afterAll(async () => void (await Promise.all(started.map((relay) => relay.stop()))));

// Side by side: each has a relay, and mostly waits for it to start.
async function start(options: StartOptions = {}): Promise<RelayProcess> {
  const relay = await startRelayProcess(options);
  started.push(relay);
  return relay;
}

const order = { type: "order.created", source: "orders", payload: { id: 1 }, idempotency_key: "order-1" };

/** As a shell has it: what `npm test` adds to the environment is not there. */
function npmStart(): StartOptions {
  const path = process.env["PATH"]!.split(delimiter).filter((folder) => !folder.includes("node_modules"));
  const npmSettings = Object.keys(process.env).filter((name) => name.startsWith("npm_"));
  return {
    command: ["npm", "start"],
    env: { ...Object.fromEntries(npmSettings.map((name) => [name, undefined])), PATH: path.join(delimiter) },
  };
}

test.concurrent("npm start runs it with the Node that npm itself has, and SIGTERM to npm ends all of it", async () => {
  const relay = await start(npmStart());
  expect(relay.url).toMatch(/^http:\/\/localhost:\d+$/);
  expect(await expectStatus(200, createClient(relay.url, null).get("/health"))).toEqual({ status: "ok" });
  const tenant = await createTenant(relay.url);
  await createEndpoint(tenant, { url: receiver.url });
  const event = await expectStatus(202, tenant.admin.post("/v1/events", order));
  expect(await terminalDelivery(tenant, event.deliveries[0].id)).toMatchObject({ status: "succeeded" });
  expect(runningInGroup(relay.group).join("\n")).toContain("workerd");

  expect(await relay.stop("SIGTERM")).toBe(0);
  await groupEnded(relay.group);
});

test.concurrent.each(["SIGTERM", "SIGINT"] as const)(
  "%s ends it with exit code 0 and no process left",
  async (signal) => {
    const relay = await start();
    expect(runningInGroup(relay.group).join("\n")).toContain("workerd");
    expect(await relay.stop(signal)).toBe(0);
    await groupEnded(relay.group);
    await expect(fetch(`${relay.url}/health`)).rejects.toThrow();
  },
);

test.concurrent("a restart keeps events, idempotency keys, API keys and signing secrets", async () => {
  const first = await start();
  const tenant = await createTenant(first.url);
  const endpoint = await createEndpoint(tenant, { url: receiver.url });
  const event = await expectStatus(202, tenant.admin.post("/v1/events", order));
  const delivered = await terminalDelivery(tenant, event.deliveries[0].id);
  const keyFile = join(first.stateDir, "secrets-key");
  const secretsKey = readFileSync(keyFile, "utf8");
  expect(secretsKey).toMatch(/^local:[A-Za-z0-9+/]{43}=\n$/);
  expect(statSync(keyFile).mode & 0o077).toBe(0);
  await first.stop();

  const second = await start({ stateDir: first.stateDir });
  const admin = createClient(second.url, tenant.adminKey);
  expect(readFileSync(keyFile, "utf8")).toBe(secretsKey);
  expect(await expectStatus(200, admin.get(`/v1/deliveries/${delivered.id}`))).toEqual(delivered);
  expect(await expectStatus(200, admin.get(`/v1/events/${event.id}/payload`))).toEqual(order.payload);
  const again = await expectStatus(200, admin.post("/v1/events", order));
  expect(again).toMatchObject({ id: event.id, duplicate: true });

  const next = await expectStatus(202, admin.post("/v1/events", { ...order, idempotency_key: "order-2" }));
  await terminalDelivery({ ...tenant, admin }, next.deliveries[0].id);
  const request = receiver.received.find(({ headers }) => headers["x-webhook-event-id"] === next.id)!;
  expect(verifyJson(endpoint.secret, request)).toMatchObject({ id: next.id, payload: order.payload });
});

test.concurrent("settings come from the environment, and without them the local defaults hold", async () => {
  const stateDir = createStateDir();
  const url = "http://127.0.0.1:9/hook";
  const byDefault = await start({ stateDir, env: { OPERATOR_TOKEN: undefined } });
  const operator = createClient(byDefault.url, "dev-operator-token");
  const tenant = await expectStatus(201, operator.post("/v1/tenants", { name: "local" }));
  const asTenant = { "X-Tenant-Id": tenant.id };
  await expectStatus(201, operator.post("/v1/endpoints", { url }, asTenant));
  await byDefault.stop();

  const strict = await start({
    stateDir,
    env: { OPERATOR_TOKEN: "a-token-of-my-own-choice", ALLOW_PRIVATE_DESTINATIONS: "false" },
  });
  expect((await createClient(strict.url, "dev-operator-token").get("/v1/tenants")).status).toBe(401);
  const own = createClient(strict.url, "a-token-of-my-own-choice");
  expect((await expectStatus(200, own.get("/v1/tenants"))).data).toHaveLength(1);
  const refused = await expectStatus(422, own.post("/v1/endpoints", { url }, asTenant));
  expect(refused).toMatchObject({ code: "validation_failed", errors: [{ path: "url" }] });
  await expectStatus(201, own.post("/v1/endpoints", { url: "https://example.com/hook" }, asTenant));
});

test.concurrent.each([
  [{ PORT: "abc" }, "PORT must be a whole number"],
  [{ HOOKLANE_SHARDS: "0" }, "HOOKLANE_SHARDS must be a whole number"],
  [{ SECRETS_KEY: "garbage" }, "SECRETS_KEY: must be id:base64 of 32 bytes"],
  [{ RETENTION_DAYS: "0" }, "RETENTION_DAYS"],
])("a setting that cannot be used, as in %o, is named, and ends the start", async (env, message) => {
  await expect(startRelayProcess({ env })).rejects.toThrow(new RegExp(`exited with 1:\\s+.*${message}[^\\n]*\\s*$`));
});

test.concurrent("a port that is taken is said, and ends the start", async () => {
  const { port } = new URL(receiver.url);
  await expect(startRelayProcess({ port: Number(port) })).rejects.toThrow(/exited with [1-9].*in use/s);
});

test.concurrent("a state folder is one relay's: a second is refused and told why, and neither a stop nor a crash leaves it locked", async () => {
  const first = await startRelayProcess();
  const { stateDir } = first;
  await expect(startRelayProcess({ stateDir })).rejects.toThrow(/exited with [1-9].*has the state folder/s);
  expect((await fetch(`${first.url}/health`)).status).toBe(200);
  await first.kill();
  const second = await startRelayProcess({ stateDir });
  await second.stop();
  await (await startRelayProcess({ stateDir })).stop();
});

/** It delivers, on the folder and the port of one that was killed. */
async function expectStartsAgain(killed: RelayProcess, tenant: TestTenant): Promise<void> {
  await start({ stateDir: killed.stateDir, port: Number(new URL(killed.url).port) });
  expect(runningInGroup(killed.group)).toEqual([]);
  await createEndpoint(tenant, { url: receiver.url });
  const event = await publish(tenant);
  expect(await terminalDelivery(tenant, event.deliveries[0].id)).toMatchObject({ status: "succeeded" });
}

test("when a SIGKILL ends nothing but the relay's own process, the next start ends the runtime that it left behind", async () => {
  const relay = await startRelayProcess({ port: await freePortToKeep() });
  const tenant = await createTenant(relay.url);
  process.kill(relay.group, "SIGKILL");
  expect(runtimeOf(relay.group)).toBeGreaterThan(0);
  await expectStartsAgain(relay, tenant);
});

test("when a SIGKILL ends nothing but npm, the relay ends by itself", async () => {
  const relay = await startRelayProcess({ ...npmStart(), port: await freePortToKeep() });
  const tenant = await createTenant(relay.url);
  process.kill(relay.group, "SIGKILL");
  await groupEnded(relay.group);
  await expectStartsAgain(relay, tenant);
});

/** The relay as `npm start` has it, but that cron comes all the time, and that it says when Miniflare blocks its process. */
const HASTY = `
  const { wait } = Atomics;
  Atomics.wait = (...values) => {
    if (new Error().stack.includes("/miniflare/")) console.log("blocked");
    return wait(...values);
  };
  const { PORT, HOOKLANE_STATE, OPERATOR_TOKEN } = process.env;
  const options = { port: Number(PORT), stateDir: HOOKLANE_STATE, settings: { OPERATOR_TOKEN }, cronIntervalMs: 50 };
  import("./scripts/relay.ts")
    .then(({ startRelay }) => startRelay(options))
    .then(({ url }) => console.log("Hooklane ready on " + url));`;

test("when a SIGKILL ends nothing but the runtime, the relay starts another and goes on, and so does its clock", async () => {
  const { stateDir, stop } = await startRelayProcess();
  await stop();
  const relay = await start({ command: [process.execPath, "--eval", HASTY], stateDir });
  const tenant = await createTenant(relay.url);
  await createEndpoint(tenant, { url: receiver.url });
  const killed = runtimeOf(relay.group);
  process.kill(killed, "SIGKILL");
  await eventually(async () => relay.printed().includes("The runtime ended unexpectedly and was started again."));
  expect(runtimeOf(relay.group)).not.toBe(killed);
  const event = await publish(tenant);
  expect(await terminalDelivery(tenant, event.deliveries[0].id)).toMatchObject({ status: "succeeded" });
  // A runtime that has printed much waits for the process to read it: blocked by a call of the runtime, it would wait for ever.
  expect(relay.printed()).not.toContain("blocked");
});
