import { afterAll, beforeAll, expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, publish, terminalDelivery } from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

test("health tells a failing endpoint and why, since when and until when, and that it has recovered", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url, disable_after_failing_seconds: 7_200 });
    const health = () => expectStatus(200, tenant.admin.get(`/v1/endpoints/${endpoint.id}/health`));
    expect(await health()).toMatchObject({ state: "unknown", window: { attempts: 0 } });

    receiver.handle((_, response) => void response.writeHead(422).end("no"));
    const dead: any[] = [];
    for (let n = 0; n < 5; n++) dead.push(await terminalDelivery(tenant, (await publish(tenant)).deliveries[0].id));
    const failing = await health();
    expect(failing).toMatchObject({
      state: "failing",
      why: expect.stringContaining("The last 5 attempts failed, the last with http_4xx 422."),
      success_rate: 0,
      consecutive_failures: 5,
      last_success_at: null,
      last_status_code: 422,
      failing_since: dead[0].attempts[0].requested_at,
    });
    expect(Date.parse(failing.disables_at) - Date.parse(failing.failing_since)).toBe(7_200_000);

    receiver.handle((_, response) => void response.end());
    const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${dead[0].id}/replay`));
    await terminalDelivery(tenant, replay.id);
    expect(await health()).toMatchObject({
      state: "degraded",
      consecutive_failures: 0,
      failing_since: null,
      disables_at: null,
    });
    expect(await expectStatus(200, tenant.admin.get(`/v1/endpoints/${endpoint.id}`))).toMatchObject({
      failing_since: null,
    });
  }));
