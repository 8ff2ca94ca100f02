import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  deliveryWhen,
  expectStatus,
  publish,
  terminalDelivery,
} from "./support/client.ts";
import { FAULTY_ENTRY, writeLedger } from "./support/faults.ts";
import { sharedRelay, startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

let relay: RelayProcess;
let server: Server;
let port: number;
let connections = 0;
beforeAll(async () => {
  server = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0);
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  relay = await startRelayProcess({ env: { HOOKLANE_ENTRY: FAULTY_ENTRY, ALLOW_PRIVATE_DESTINATIONS: "false" } });
});
afterAll(async () => {
  await relay.stop();
  server.close();
});

const HOSTS = ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "127.0.0.1.nip.io"];
const ROUTES = [{ ordering_mode: "unordered" }, { ordering_mode: "strict" }];

test("a private URL that was written straight into the ledger ends every delivery to it: no attempt, no socket", async () => {
  const tenant = await createTenant(relay.url);
  const wanted = HOSTS.flatMap((host) => ROUTES.map((route) => ({ ...route, url: `http://${host}:${port}/hook` })));
  const urls = new Map<string, string>();
  for (const { url, ordering_mode } of wanted) {
    await expect(createEndpoint(tenant, { url, ordering_mode })).rejects.toThrow("422");
    const { id } = await createEndpoint(tenant, { url: "https://hooks.example.com/", ordering_mode });
    urls.set(id, url);
    await expectStatus(200, tenant.admin.post(`/v1/endpoints/${id}/pause`));
  }
  const { deliveries } = await publish(tenant);
  expect(deliveries).toHaveLength(wanted.length);
  for (const [id, url] of urls) {
    await writeLedger(relay.url, "update endpoint set url = ? where id = ?", url, id);
    await expectStatus(200, tenant.admin.post(`/v1/endpoints/${id}/resume`));
  }
  for (const { id } of deliveries) {
    expect(await terminalDelivery(tenant, id)).toMatchObject({
      status: "failed",
      final_outcome: "destination_blocked",
      last_error_class: "blocked_destination",
      attempt_count: 0,
      attempts: [],
    });
  }
  expect(connections).toBe(0);
});

test("the listener of this file does see what is sent to it", async () => {
  const open = await sharedRelay();
  const tenant = await createTenant(open.url);
  await createEndpoint(tenant, { url: `http://127.0.0.1:${port}/hook`, retry_policy: { delays_seconds: [3600] } });
  const { deliveries } = await publish(tenant);
  await deliveryWhen(tenant, deliveries[0].id, ({ last_error_class }) => last_error_class !== null);
  expect(connections).toBeGreaterThan(0);
});
