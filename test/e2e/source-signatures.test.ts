import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEndpoint, createTenant, eventually, expectStatus, publish, type TestTenant } from "./support/client.ts";
import { namedBlock, readDoc } from "./support/docs/markdown.ts";
import { fetchApi } from "./support/conformance.ts";
import { nothingOpen } from "./support/many.ts";
import { withReceiver, type Received } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";

type Verify = (headers: Received["headers"], body: Buffer) => Promise<void>;

const relay = await sharedRelay();
const folder = mkdtempSync(join(tmpdir(), "hooklane-source-keys-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As docs/receiving.md has a consumer do it: with the keys that it fetched, kept for five minutes. */
let createVerifier: (relay: string, sourceId: string, endpointId: string) => Verify;
let verify: (keys: string[], endpointId: string, headers: Received["headers"], body: Buffer) => void;
beforeAll(async () => {
  symlinkSync(resolve(import.meta.dirname, "../../node_modules"), join(folder, "node_modules"));
  const page = readDoc("docs/receiving.md");
  for (const file of ["verify-source.mjs", "source-keys.mjs"])
    writeFileSync(join(folder, file), namedBlock(page, file));
  ({ createVerifier } = await import(pathToFileURL(join(folder, "source-keys.mjs")).href));
  ({ verify } = await import(pathToFileURL(join(folder, "verify-source.mjs")).href));
});

async function readKeys(sourceId: string): Promise<{ public_key: string; version: number }[]> {
  const response = await fetchApi(`${relay.url}/.well-known/webhook-keys/${sourceId}`);
  expect(response.headers.get("cache-control")).toBe("public, max-age=300");
  return ((await response.json()) as any).keys;
}
const textsOf = (keys: { public_key: string }[]) => keys.map(({ public_key }) => public_key);

const rotate = ({ admin, sourceId }: TestTenant, force = false) =>
  expectStatus(200, admin.post(`/v1/sources/${sourceId}/rotate-key`, { kind: "delivery_key", force }));

const EVENTS_OF_A_STRETCH = 40;

test.each([{ ordering_mode: "unordered" }, { ordering_mode: "strict" }])(
  "through a rotation under traffic every request is verified, by a list from before it, from after it and as it stands (%j)",
  (route) =>
    withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      const settings = { source_signatures: true, retry_policy: { delays_seconds: [0.2], jitter: 0 }, ...route };
      const { id: endpointId, secret } = await createEndpoint(tenant, { url: receiver.url, ...settings });
      const before = textsOf(await readKeys(tenant.sourceId));
      const verifyKept = createVerifier(relay.url, tenant.sourceId, endpointId);
      const unverifiable: unknown[] = [];
      receiver.handle(async ({ headers, body, n }, response) => {
        try {
          // As it stands when the request is here, and as a consumer has it that keeps what it fetched.
          verify(textsOf(await readKeys(tenant.sourceId)), endpointId, headers, body);
          await verifyKept(headers, body);
        } catch (error) {
          unverifiable.push(error);
          return void response.writeHead(401).end();
        }
        // Some are tried again, and so cross the rotation.
        response.writeHead(n % 7 === 0 ? 503 : 204).end();
      });

      const stopped = new AbortController();
      let published = 0;
      const traffic = Array.from({ length: 3 }, async () => {
        while (!stopped.signal.aborted) {
          await publish(tenant, { payload: { n: ++published } });
          await eventually(async () => published - receiver.received.length < 30);
        }
      });
      const more = async () => {
        const wanted = receiver.received.length + EVENTS_OF_A_STRETCH;
        await eventually(async () => receiver.received.length >= wanted);
      };
      await more();
      await rotate(tenant);
      const after = textsOf(await readKeys(tenant.sourceId));
      await more();
      stopped.abort();
      await Promise.all(traffic);
      await nothingOpen(tenant);

      expect(unverifiable).toEqual([]);
      expect(after).toHaveLength(2);
      expect(after[1]).toBe(before[0]);
      const signaturesOf = ({ headers }: Received) => String(headers["webhook-signature"]).split(" v1a,").length - 1;
      for (const request of receiver.received) {
        verifyJson(secret, request);
        expect(() => verify(before, endpointId, request.headers, request.body)).not.toThrow();
        expect(() => verify(after, endpointId, request.headers, request.body)).not.toThrow();
      }
      // It was under traffic: there are requests of either side.
      expect(new Set(receiver.received.map(signaturesOf))).toEqual(new Set([1, 2]));
    }),
);

test("a key that has leaked is ended by a second rotation with force: no list has it, and no later request is by it", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const { id: endpointId } = await createEndpoint(tenant, { url: receiver.url, source_signatures: true });
    const leaked = textsOf(await readKeys(tenant.sourceId));
    await rotate(tenant);
    await rotate(tenant, true);
    await publish(tenant);
    const [request] = await receiver.waitFor(1);
    const keys = await readKeys(tenant.sourceId);
    expect(keys.map(({ version }) => version)).toEqual([3, 2]);
    const { headers, body } = request!;
    for (const key of textsOf(keys)) expect(() => verify([key], endpointId, headers, body)).not.toThrow();
    expect(() => verify(leaked, endpointId, headers, body)).toThrow("no signature matches");
  }));

test("a request that is sent on to another endpoint of the same source is refused there", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const settings = { url: receiver.url, source_signatures: true, payload_format: "raw" };
    const own = await createEndpoint(tenant, settings);
    const other = await createEndpoint(tenant, { url: "http://127.0.0.1:9/" }, "nothing.at.all");
    await publish(tenant);
    const [{ headers, body }] = (await receiver.waitFor(1)) as [Received];
    expect(headers["x-webhook-source-id"]).toBe(tenant.sourceId);
    const keys = textsOf(await readKeys(tenant.sourceId));
    expect(() => verify(keys, own.id, headers, body)).not.toThrow();
    expect(() => verify(keys, other.id, headers, body)).toThrow("for another endpoint");
  }));
