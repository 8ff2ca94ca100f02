import { Webhook as SvixWebhook } from "svix";
import { expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { withReceiver, type Received } from "./support/receiver.ts";
import { OPERATOR_TOKEN, sharedRelay } from "./support/relay-process.ts";
import { verifyJson } from "./support/signature.ts";

const relay = await sharedRelay();
const operator = createClient(relay.url, OPERATOR_TOKEN);

const setPrefix = ({ id }: TestTenant, header_prefix: string | null) =>
  expectStatus(200, operator.call("PATCH", `/v1/tenants/${id}`, { header_prefix }));

/** Of a request's headers, those that begin so, by what follows. */
const under = ({ headers }: Received, prefix: string) =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  );

test.each([{ ordering_mode: "unordered" }, { ordering_mode: "strict" }])(
  "a consumer that comes from Svix verifies with its library and svix- headers alone; the standard ones go beside (%j)",
  (route) =>
    withReceiver(async (receiver) => {
      receiver.handle(({ n }, response) => void response.writeHead(n === 1 ? 503 : 200).end());
      const tenant = await createTenant(relay.url);
      await setPrefix(tenant, "svix-");
      const retry_policy = { delays_seconds: [0.2], jitter: 0 };
      const { secret } = await createEndpoint(tenant, { url: receiver.url, retry_policy, ...route });
      const { id, deliveries } = await publish(tenant, { payload: { total: 1 }, ordering_key: "cart-7" });
      await terminalDelivery(tenant, deliveries[0].id);
      expect(receiver.received).toHaveLength(2);
      for (const request of receiver.received) {
        const { "svix-id": svixId, "svix-timestamp": timestamp, "svix-signature": signature } = request.headers;
        const alone = { "svix-id": svixId, "svix-timestamp": timestamp, "svix-signature": signature };
        // It throws, or gives nothing back.
        const verify = (body: string) => new SvixWebhook(secret).verify(body, alone as Record<string, string>);
        expect(() => verify(request.body.toString())).not.toThrow();
        expect(() => verify(`${request.body.toString()} `)).toThrow();
        expect(verifyJson(secret, request)).toMatchObject({ id, payload: { total: 1 } });

        const { hop, ...event } = under(request, "x-webhook-");
        expect(under(request, "svix-")).toEqual({ ...under(request, "webhook-"), ...event });
        expect(Object.keys(event)).toContain("ordering-key");
        expect(hop).toBe("1");
      }
    }),
);

test("the prefix is one tenant's; a change holds for what is sent later, test sends and replays too", () =>
  withReceiver(async (receiver) => {
    const [tenant, other] = [await createTenant(relay.url), await createTenant(relay.url)];
    await setPrefix(tenant, "X-Acme-");
    await createEndpoint(other, { url: `${receiver.url}/other` });
    const { id } = await createEndpoint(tenant, { url: `${receiver.url}/own`, headers: { "X-Team": "orders" } });
    const { deliveries } = await publish(tenant);
    await terminalDelivery(tenant, deliveries[0].id);
    await publish(other);
    await receiver.waitFor(2);
    const at = (path: string) => receiver.received.filter((request) => request.path === path);
    expect(under(at("/other")[0]!, "x-acme-")).toEqual({});
    expect(at("/own")[0]!.headers).toMatchObject({ "x-acme-event-type": "order.created", "x-team": "orders" });

    await setPrefix(tenant, "X-Brand-");
    await expectStatus(200, tenant.admin.post(`/v1/endpoints/${id}/test`));
    await setPrefix(tenant, null);
    const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${deliveries[0].id}/replay`));
    await terminalDelivery(tenant, replay.id);
    const [, test, replayed] = at("/own");
    expect(under(test!, "x-acme-")).toEqual({});
    expect(test!.headers["x-brand-event-type"]).toBe("hooklane.test");
    expect(Object.keys(replayed!.headers).filter((name) => /^x-(acme|brand)-/.test(name))).toEqual([]);
  }));
