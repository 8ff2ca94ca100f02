import { expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  expectStatus,
  listAll,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { eventually } from "./support/eventually.ts";
import { numberOf, QUICK_RETRY, readLane } from "./support/lanes.ts";
import { readDeliveries } from "./support/many.ts";
import { withReceiver, type Receiver } from "./support/receiver.ts";
import { OPERATOR_TOKEN, sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

const setStatus = (tenant: TestTenant, status: "suspended" | "active") =>
  expectStatus(200, createClient(relay.url, OPERATOR_TOKEN).call("PATCH", `/v1/tenants/${tenant.id}`, { status }));

/** Publishes numbered events one after the other until one is refused; gives back their ids, in order. */
async function publishUntilRefused({ admin }: TestTenant): Promise<{ ids: string[]; refusal: any }> {
  const ids: string[] = [];
  for (let n = 0; ; n++) {
    const event = { type: "order.created", source: "orders", payload: { n } };
    const { status, body } = await admin.post("/v1/events", event);
    if (status !== 202) return { ids, refusal: { status, code: body.code } };
    ids.push(body.id);
  }
}

/** Something else that the relay does: when this has been answered a few times, what was due before it was due. */
async function letOthersRetry(receiver: Receiver): Promise<void> {
  const other = await createTenant(relay.url);
  await createEndpoint(other, { url: `${receiver.url}/other`, retry_policy: { ...QUICK_RETRY, max_attempts: 6 } });
  const { deliveries } = await publish(other, { payload: { n: -1 } });
  expect(await terminalDelivery(other, deliveries[0].id)).toMatchObject({ final_outcome: "exhausted" });
}

test("under traffic: after a suspension has answered nothing starts; after the reactivation all of it arrives, in order", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const hook = (path: string) => ({ url: receiver.url + path, retry_policy: QUICK_RETRY, timeout_ms: 30_000 });
    const strict = await createEndpoint(tenant, { ...hook("/strict"), ordering_mode: "strict" });
    const endpoints = [strict];
    for (const path of ["/queue", "/capped"]) {
      endpoints.push(
        await createEndpoint(tenant, { ...hook(path), ...(path === "/capped" && { concurrency_cap: 2 }) }),
      );
    }
    // Every seventh fails at first, so retries are due while it is suspended.
    const seen = new Map<string, number>();
    const suspension = Promise.withResolvers<void>();
    receiver.handle(async (request, response) => {
      // By then the strict lane stands, and much is published that waits for it.
      if (request.path === "/strict" && numberOf(request) === 10) await suspension.promise;
      const key = `${request.path} ${numberOf(request)}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
      const fails = request.path === "/other" || (numberOf(request) % 7 === 0 && seen.get(key) === 1);
      response.writeHead(fails ? 503 : 200).end();
    });

    const publishing = publishUntilRefused(tenant);
    await receiver.waitFor(60);
    const suspended = await setStatus(tenant, "suspended");
    const answeredAt = Date.now();
    suspension.resolve();
    expect(suspended).toMatchObject({ status: "suspended", suspended_at: expect.any(String) });
    const { ids, refusal } = await publishing;
    expect(refusal).toEqual({ status: 403, code: "tenant_suspended" });
    await letOthersRetry(receiver);
    const open = (await listAll(tenant, "/v1/deliveries")).filter(({ terminal_at }) => terminal_at === null);
    expect(open.length).toBeGreaterThan(0);
    const attempts = async () => {
      const ids = (await listAll(tenant, "/v1/deliveries")).map(({ id }) => id);
      const all = await readDeliveries(tenant, ids);
      return all.flatMap((delivery) => delivery.attempts.map((one: any) => Date.parse(one.requested_at)));
    };
    expect((await attempts()).filter((requestedAt) => requestedAt > answeredAt)).toEqual([]);
    expect((await readLane(tenant, strict.id)).state).toBe("paused");
    expect((await expectStatus(200, tenant.admin.get(`/v1/endpoints/${strict.id}`))).state).toBe("active");

    const activeAt = Date.now();
    expect(await setStatus(tenant, "active")).toMatchObject({ status: "active", suspended_at: null });
    const deliveries = await eventually(async () => {
      const all = await listAll(tenant, "/v1/deliveries");
      return all.every(({ terminal_at }) => terminal_at !== null) && all;
    });
    expect(deliveries).toHaveLength(ids.length * endpoints.length);
    expect(deliveries.filter(({ status }) => status !== "succeeded")).toEqual([]);
    // None was made in between, and each arrived as often as it is on record.
    const requestedAt = await attempts();
    expect(requestedAt.filter((at) => at > answeredAt && at < activeAt)).toEqual([]);
    const arrived = receiver.received.filter(({ path }) => path !== "/other");
    expect(arrived).toHaveLength(requestedAt.length);
    const strictOrder = arrived.filter(({ path }) => path === "/strict").map(numberOf);
    expect(strictOrder.filter((n, i) => n !== strictOrder[i - 1])).toEqual(ids.map((_, n) => n));
    const next = await publish(tenant, { payload: { n: 1 } });
    expect(next.delivery_count).toBe(3);
    await terminalDelivery(tenant, next.deliveries[0].id);
  }));
