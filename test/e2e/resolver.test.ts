import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  deliveryWhen,
  eventually,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

/** What DNS says of a name, or how the resolver fails at it. */
type Records = { a?: string[]; aaaa?: string[]; cname?: string; status?: number; ttl?: number };
type Zone = Record<string, Records | ((response: ServerResponse) => void)>;

let server: Server;
let relay: RelayProcess;
const zone: Zone = {};
const asked: { name: string; type: string; accept: string | undefined }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://resolver");
    const [name, type] = [searchParams.get("name")!, searchParams.get("type")!];
    asked.push({ name, type, accept: request.headers.accept });
    const records = zone[name] ?? { status: 3 };
    if (pathname !== "/dns-query") return void response.writeHead(404).end();
    if (typeof records === "function") return records(response);
    const { a = [], aaaa = [], cname, status = 0, ttl = 300 } = records;
    const addresses = type === "A" ? a : aaaa;
    const Answer = [
      ...(cname === undefined ? [] : [{ name, type: 5, TTL: ttl, data: cname }]),
      ...addresses.map((data) => ({ name: cname ?? name, type: type === "A" ? 1 : 28, TTL: ttl, data })),
    ];
    response.writeHead(200, { "Content-Type": "application/dns-json" });
    response.end(JSON.stringify({ Status: status, TC: false, Question: [{ name: `${name}.` }], Answer }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const DOH_URL = `http://127.0.0.1:${port}/dns-query`;
  relay = await startRelayProcess({ env: { ALLOW_PRIVATE_DESTINATIONS: "false", DOH_URL } });
});
afterAll(async () => {
  await relay.stop();
  server.closeAllConnections();
  server.close();
});

const SETTINGS = { timeout_ms: 1000, retry_policy: { delays_seconds: [3600], jitter: 0 } };

/** A name of this test's own: isolates remember what names led to. */
let serial = 0;
const freshName = () => `hooks-${++serial}.example.com`;
const questionsFor = (name: string) => asked.filter((question) => question.name === name);

async function deliveryTo(host: string, settings: object = {}): Promise<{ tenant: TestTenant; id: string }> {
  const tenant = await createTenant(relay.url);
  await createEndpoint(tenant, { url: `https://${host}/in`, ...SETTINGS, ...settings });
  const { deliveries } = await publish(tenant);
  return { tenant, id: deliveries[0].id };
}

const BLOCKED = { status: "failed", final_outcome: "destination_blocked", attempt_count: 0, attempts: [] };

test.concurrent.each<[string, Records]>([
  ["private", { a: ["10.0.0.1"] }],
  ["the metadata service", { a: ["169.254.169.254"] }],
  ["one private among public ones", { a: ["93.184.215.14", "192.168.1.1"] }],
  ["private by IPv6 only", { a: ["93.184.215.14"], aaaa: ["fd00::1"] }],
  ["private at the end of a chain", { cname: "internal.example.net.", a: ["127.0.0.1"] }],
  ["private inside IPv6", { aaaa: ["64:ff9b::a00:1"] }],
])("a name whose addresses are %s ends its deliveries without an attempt", async (_, records) => {
  for (const ordering_mode of ["unordered", "strict"]) {
    const name = freshName();
    zone[name] = records;
    const { tenant, id } = await deliveryTo(name, { ordering_mode });
    expect(await terminalDelivery(tenant, id)).toMatchObject(BLOCKED);
    expect(questionsFor(name)).toEqual([
      { name, type: expect.stringMatching(/^A(AAA)?$/), accept: "application/dns-json" },
      { name, type: expect.stringMatching(/^A(AAA)?$/), accept: "application/dns-json" },
    ]);
  }
});

test.concurrent("a name whose addresses are all public is attempted, and asked for once while DNS lets it be remembered", async () => {
  const name = freshName();
  zone[name] = { a: ["93.184.215.14"], aaaa: ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"] };
  const { tenant, id } = await deliveryTo(name);
  // Nobody is there: the name is of this test.
  await deliveryWhen(tenant, id, ({ last_error_class }) => last_error_class !== null);
  const next = await publish(tenant);
  const attempted = await deliveryWhen(
    tenant,
    next.deliveries[0].id,
    ({ attempts }) => attempts[0]?.outcome_class != null,
  );
  expect(attempted.attempts).toMatchObject([{ outcome_class: "unreachable" }]);
  expect(questionsFor(name)).toHaveLength(2);
});

test.concurrent("a name that does not exist is the endpoint's fault: an attempt is spent", async () => {
  const { tenant, id } = await deliveryTo(freshName());
  const attempted = await deliveryWhen(tenant, id, ({ last_error_class }) => last_error_class !== null);
  expect(attempted).toMatchObject({
    status: "pending",
    attempts: [{ outcome_class: "unreachable", error_class: "dns" }],
  });
});

test.concurrent.each<[string, (response: ServerResponse) => void]>([
  ["fails", (response) => void response.writeHead(500).end()],
  ["answers what nobody can read", (response) => void response.writeHead(200).end("<html>")],
  ["hangs", () => {}],
  ["hangs in the middle", (response) => void response.writeHead(200).write("{")],
  ["hangs up", (response) => void response.destroy()],
])("a resolver that %s costs the endpoint nothing, and the delivery goes on when it is back", async (_, answer) => {
  const name = freshName();
  let failed = 0;
  zone[name] = (response) => {
    failed++;
    answer(response);
  };
  const { tenant, id } = await deliveryTo(name);
  await eventually(async () => failed >= 4);
  expect(await expectStatus(200, tenant.admin.get(`/v1/deliveries/${id}`))).toMatchObject({
    status: "pending",
    attempt_count: 0,
    attempts: [],
  });
  zone[name] = { a: ["10.0.0.1"] };
  expect(await terminalDelivery(tenant, id)).toMatchObject(BLOCKED);
});
