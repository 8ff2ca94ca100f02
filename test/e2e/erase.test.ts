import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { FAULTY_ENTRY, setFaults } from "./support/faults.ts";
import { failedOnce } from "./support/lanes.ts";
import { withReceiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess({ env: { HOOKLANE_ENTRY: FAULTY_ENTRY } });
});
afterAll(() => relay.stop());

const erase = ({ admin }: TestTenant, id: string) => admin.call("DELETE", `/v1/events/${id}/payload`);

test("an erased payload is sent to nobody any more: what waits for a retry ends, and cannot be replayed", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [3_600], jitter: 0 };
    await createEndpoint(tenant, { url: `${receiver.url}/down`, retry_policy });
    receiver.handle((_, response) => void response.writeHead(503).end());
    const event = await publish(tenant, { payload: { name: "Ada" } });
    const waiting = await failedOnce(tenant, event.deliveries[0].id);

    expect((await erase(tenant, event.id)).status).toBe(204);
    const ended = await terminalDelivery(tenant, waiting.id);
    expect(ended).toMatchObject({ status: "failed", final_outcome: "payload_missing", attempt_count: 1 });
    await expectStatus(404, tenant.admin.get(`/v1/events/${event.id}/payload`));
    const replay = await expectStatus(409, tenant.admin.post(`/v1/deliveries/${waiting.id}/replay`));
    expect(replay.code).toBe("payload_erased");
    expect(receiver.received).toHaveLength(1);
    expect(await expectStatus(200, tenant.admin.get(`/v1/events/${event.id}`))).toMatchObject({
      payload_size: 14,
      payload_sha256: "88bab6d8f6dc68a877064d584cbb5b6c50e74f617ea50d81d3a53c2ee6ffbc4f",
      payload_erased_at: expect.any(String),
    });
  }));

test("while the store is away an erasure is 503 and says of nothing that it is erased; afterwards it is done", async () => {
  const tenant = await createTenant(relay.url);
  const event = await publish(tenant);
  await setFaults(relay.url, { payloads: { puts: true } });
  const refused = await erase(tenant, event.id);
  expect(refused).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect(refused.headers.get("Retry-After")).not.toBeNull();
  await setFaults(relay.url, {});
  const path = `/v1/events/${event.id}`;
  expect(await expectStatus(200, tenant.admin.get(path))).toMatchObject({ payload_erased_at: null });
  await expectStatus(200, tenant.admin.get(`${path}/payload`));
  expect((await erase(tenant, event.id)).status).toBe(204);
  await expectStatus(404, tenant.admin.get(`${path}/payload`));
});

test("when the ledger does not take the word that a payload is erased, nobody gets its bytes all the same", async () => {
  const tenant = await createTenant(relay.url);
  const event = await publish(tenant);
  await setFaults(relay.url, { ledger: { statements: "writes", containing: "payload_erased_at", fault: "refused" } });
  expect((await erase(tenant, event.id)).status).toBe(503);
  await setFaults(relay.url, {});
  await expectStatus(404, tenant.admin.get(`/v1/events/${event.id}/payload`));
  expect((await erase(tenant, event.id)).status).toBe(204);
});
