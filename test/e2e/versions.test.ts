import { describe, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  listAll,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { withReceiver, type Receiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";

const relay = await sharedRelay();
const TYPE = "invoice.paid";

/** Bytes that no parser would give back, and which say which version they are. */
const bytesOf = (version: number, n: number) => `{ "v${version}" :1.0,"n":9007199254740993${n} }`;

/** One event, published in these versions; when it was sent and acknowledged. */
interface Sent {
  id: string;
  deliveries: { id: string }[];
  n: number;
  sentAt: number;
  acknowledgedAt: number;
}

/** Four producers, each of which publishes again and again, until it is told to stop. */
function startProducers({ admin }: TestTenant, versions: number[]) {
  const sent: Sent[] = [];
  let clock = 0;
  let n = 0;
  const over = new AbortController();
  const body = (n: number) => {
    const [own, ...others] = versions;
    const variants = others.map((version) => `{"schema_version":${version},"payload":${bytesOf(version, n)}}`);
    const fields = `"type":"${TYPE}","source":"orders","schema_version":${own},"idempotency_key":"k-${n}"`;
    return `{${fields},"payload":${bytesOf(own!, n)},"variants":[${variants.join(",")}]}`;
  };
  const producers = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      const own = ++n;
      const sentAt = ++clock;
      const { id, deliveries } = await expectStatus(202, admin.post("/v1/events", body(own)));
      sent.push({ id, deliveries, n: own, sentAt, acknowledgedAt: ++clock });
    }
  });
  return {
    sent,
    /** Resolves when this many more were acknowledged. */
    async more(count: number) {
      const wanted = sent.length + count;
      await eventually(async () => sent.length >= wanted);
    },
    /** Does something between two moments of the producers' clock, and gives them back. */
    async during<T>(act: () => Promise<T>) {
      const begunAt = ++clock;
      const result = await act();
      return { result, begunAt, answeredAt: ++clock };
    },
    async stop() {
      over.abort();
      await Promise.all(producers);
    },
  };
}

/** Versions by event, of what has arrived: each event once, signed, in bytes that were published for that version. */
function arrived(receiver: Receiver, secret: string): Map<string, number> {
  const versions = new Map<string, number>();
  for (const request of receiver.received) {
    verifyJson(secret, request);
    const eventId = String(request.headers["x-webhook-event-id"]);
    expect(versions.has(eventId), `${eventId} has come twice`).toBe(false);
    const version = Number(request.headers["x-webhook-schema-version"]);
    versions.set(eventId, version);
    const text = request.body.toString();
    expect(text).toContain(`"schema_version":${version},`);
    expect(text).toMatch(new RegExp(`"payload":\\{ "v${version}" :1\\.0,"n":9007199254740993\\d+ \\}\\}$`));
  }
  return versions;
}

describe("a consumer moves from version 3 to 4 under traffic, and each event comes once, in one of them", () => {
  async function move(
    act: (tenant: TestTenant, endpoint: { id: string; subscriptionId: string }) => Promise<void>,
  ): Promise<void> {
    await withReceiver(async (receiver) => {
      const tenant = await createTenant(relay.url);
      const register = (schema_version: number) =>
        expectStatus(201, tenant.admin.post("/v1/event-types", { name: TYPE, schema_version }));
      await register(3);
      const endpoint = await createEndpoint(tenant, { url: receiver.url }, TYPE);
      await register(4);
      const producers = startProducers(tenant, [3, 4]);
      await producers.more(20);
      const { begunAt, answeredAt } = await producers.during(() => act(tenant, endpoint));
      await producers.more(20);
      await producers.stop();
      await receiver.waitFor(producers.sent.length);
      const versions = arrived(receiver, endpoint.secret);
      expect(versions.size).toBe(producers.sent.length);
      for (const { id, n, sentAt, acknowledgedAt } of producers.sent) {
        if (acknowledgedAt < begunAt) expect(versions.get(id), `event ${n}`).toBe(3);
        else if (sentAt > answeredAt) expect(versions.get(id), `event ${n}`).toBe(4);
        else expect([3, 4]).toContain(versions.get(id));
      }
      const deliveries = await listAll(tenant, "/v1/deliveries");
      expect(deliveries).toHaveLength(producers.sent.length);
      for (const { event_id, schema_version } of deliveries) expect(schema_version).toBe(versions.get(event_id));
    });
  }

  test("by a change of its pin", () =>
    move(async ({ admin }, { subscriptionId }) => {
      await expectStatus(200, admin.call("PATCH", `/v1/subscriptions/${subscriptionId}`, { schema_version: 4 }));
    }));

  test("by a second subscription, after which the first one goes", () =>
    move(async ({ admin }, { id, subscriptionId }) => {
      const second = { endpoint_id: id, event_type_pattern: TYPE };
      expect(await expectStatus(201, admin.post("/v1/subscriptions", second))).toMatchObject({ schema_version: 4 });
      await expectStatus(204, admin.call("DELETE", `/v1/subscriptions/${subscriptionId}`));
    }));
});

test("under traffic nothing of a version is sent once its retirement was answered, and nothing before it is lost", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    for (const schema_version of [3, 4]) {
      await expectStatus(201, tenant.admin.post("/v1/event-types", { name: TYPE, schema_version }));
    }
    const pinned = await createEndpoint(tenant, { url: receiver.url }, "nothing");
    await expectStatus(
      201,
      tenant.admin.post("/v1/subscriptions", { endpoint_id: pinned.id, event_type_pattern: TYPE, schema_version: 3 }),
    );
    const producers = startProducers(tenant, [4, 3]);
    await producers.more(20);
    const retire = (fields: object = {}) =>
      tenant.admin.call("PATCH", `/v1/event-types/${TYPE}`, { schema_version: 3, retired: true, ...fields });
    expect(await expectStatus(409, retire())).toMatchObject({
      code: "version_in_use",
      subscriptions: [{ endpoint_id: pinned.id }],
    });
    const { begunAt, answeredAt } = await producers.during(() => expectStatus(200, retire({ force: true })));
    await producers.more(20);
    await producers.stop();
    for (const { deliveries, sentAt, acknowledgedAt } of producers.sent) {
      const delivery = await terminalDelivery(tenant, deliveries[0]!.id);
      if (acknowledgedAt < begunAt) expect(delivery).toMatchObject({ final_outcome: "delivered", schema_version: 3 });
      else if (sentAt > answeredAt) {
        expect(delivery).toMatchObject({ status: "failed", final_outcome: "version_retired", attempts: [] });
      } else expect(["delivered", "version_retired"]).toContain(delivery.final_outcome);
    }
    const versions = arrived(receiver, pinned.secret);
    expect(new Set(versions.values())).toEqual(new Set([3]));
  }));
