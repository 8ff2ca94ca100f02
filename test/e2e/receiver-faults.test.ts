import { afterAll, beforeAll, expect, test } from "vitest";
import { createEndpoint, createTenant, publish, terminalDelivery } from "./support/client.ts";
import { withReceiver, type Handler } from "./support/receiver.ts";
import { startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { sleep } from "./support/sleep.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

const TIMEOUT_MS = 5_000;
let saidLate: Promise<void> = Promise.resolve();
const late: Handler = async (_, response) => {
  saidLate = sleep(2 * TIMEOUT_MS).then(() => void response.end("ok"));
};

test.concurrent.each<[string, Handler, string]>([
  [
    "resets the connection once it has read the request",
    (_, response) => void response.socket!.resetAndDestroy(),
    "reset",
  ],
  ["says yes after the deadline", late, "timeout"],
])("a strict receiver that %s gets the same webhook again, and nothing before it", async (_, first, errorClass) =>
  withReceiver(async (receiver) => {
    receiver.handle((request, response, raw) =>
      request.n === 1 ? first(request, response, raw) : void response.end("ok"),
    );
    const tenant = await createTenant(relay.url);
    const policy = { delays_seconds: [0.2], jitter: 0 };
    await createEndpoint(tenant, {
      url: receiver.url,
      ordering_mode: "strict",
      timeout_ms: TIMEOUT_MS,
      retry_policy: policy,
    });
    const events = [await publish(tenant), await publish(tenant)];
    const deliveries = await Promise.all(events.map((event) => terminalDelivery(tenant, event.deliveries[0].id)));
    expect(deliveries.map(({ status, attempt_count }) => [status, attempt_count])).toEqual([
      ["succeeded", 2],
      ["succeeded", 1],
    ]);
    expect(deliveries[0].attempts.map((attempt: any) => attempt.error_class)).toEqual([
      errorClass === "reset" ? expect.stringMatching(/^(reset|network)$/) : errorClass,
      null,
    ]);
    const [one, two] = deliveries.map(({ idempotency_key }) => idempotency_key);
    expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual([one, one, two]);
    await saidLate;
    const again = await terminalDelivery(tenant, deliveries[0].id);
    expect(again).toEqual(deliveries[0]);
  }),
);
