import { expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { failedOnce, readDelivery } from "./support/lanes.ts";
import { withReceiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { isSignedBy } from "./support/signature.ts";

const relay = await sharedRelay();

const replay = ({ admin }: TestTenant, id: string, body?: unknown) =>
  expectStatus(202, admin.post(`/v1/deliveries/${id}/replay`, body));

test.concurrent("a replay of a dead letter delivers it with the same webhook-id, linked both ways", () =>
  withReceiver(async (receiver) => {
    receiver.handle(({ n }, response) => void response.writeHead(n <= 2 ? 500 : 200).end());
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.05], max_attempts: 2 };
    const { secret } = await createEndpoint(tenant, { url: receiver.url, retry_policy });
    const { deliveries } = await publish(tenant);
    const dead = await terminalDelivery(tenant, deliveries[0].id);
    expect(dead).toMatchObject({ status: "dead_letter", attempt_count: 2, replay_of: null, replayed_as: null });

    const deadLetters = async (query = "") =>
      (await expectStatus(200, tenant.admin.get(`/v1/deliveries?status=dead_letter${query}`))).data.map(
        ({ id }: any) => id,
      );
    expect(await deadLetters()).toEqual([dead.id]);

    const second = await replay(tenant, dead.id);
    // What has been replayed is nobody's open question any more.
    expect(await deadLetters()).toEqual([]);
    expect(await deadLetters("&include_replayed=false")).toEqual([]);
    expect(await deadLetters("&include_replayed=true")).toEqual([dead.id]);
    await expectStatus(422, tenant.admin.get("/v1/deliveries?include_replayed=true"));
    expect(second.id).not.toBe(dead.id);
    expect(second).toMatchObject({
      replay_of: dead.id,
      replayed_as: null,
      event_id: dead.event_id,
      endpoint_id: dead.endpoint_id,
      subscription_id: dead.subscription_id,
      idempotency_key: dead.idempotency_key,
    });
    const delivered = await terminalDelivery(tenant, second.id);
    expect(delivered).toMatchObject({ status: "succeeded", attempt_count: 1, replay_of: dead.id });
    // A terminal row changes nothing but this.
    expect(await readDelivery(tenant, dead.id)).toEqual({ ...dead, replayed_as: second.id });

    expect(receiver.received).toHaveLength(3);
    const [first, , third] = receiver.received;
    expect(third!.headers).toMatchObject({
      "webhook-id": first!.headers["webhook-id"],
      "x-webhook-event-id": first!.headers["x-webhook-event-id"],
      "x-webhook-delivery-id": second.id,
      "x-webhook-attempt": "1",
    });
    expect(third!.body).toEqual(first!.body);
    expect(isSignedBy(secret, third!)).toBe(true);
  }));

test.concurrent("each replay names the delivery it repeats, and that one names its newest replay", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant);
    const original = await terminalDelivery(tenant, deliveries[0].id);
    const second = await terminalDelivery(tenant, (await replay(tenant, original.id)).id);
    const third = await terminalDelivery(tenant, (await replay(tenant, original.id)).id);
    const ofSecond = await terminalDelivery(tenant, (await replay(tenant, second.id)).id);
    expect([second, third, ofSecond].map(({ replay_of }) => replay_of)).toEqual([original.id, original.id, second.id]);
    expect(await readDelivery(tenant, original.id)).toMatchObject({ replayed_as: third.id });
    expect(await readDelivery(tenant, second.id)).toMatchObject({ replayed_as: ofSecond.id });
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  }));

test.concurrent("replays at once make as many deliveries, each with an id and a request of its own", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url });
    const { deliveries } = await publish(tenant);
    const { id } = await terminalDelivery(tenant, deliveries[0].id);
    const replays = await Promise.all(Array.from({ length: 8 }, () => replay(tenant, id)));
    expect(new Set(replays.map((made) => made.id)).size).toBe(8);
    for (const made of replays) await terminalDelivery(tenant, made.id);
    expect(receiver.received).toHaveLength(9);
    expect(replays.map((made) => made.id)).toContain((await readDelivery(tenant, id)).replayed_as);
  }));

test.concurrent("a replay takes the endpoint's present URL, format and policy, or the policy given", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(500).end());
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.05], max_attempts: 1 };
    const endpoint = await createEndpoint(tenant, { url: `${receiver.url}/old`, retry_policy });
    const { deliveries } = await publish(tenant);
    const dead = await terminalDelivery(tenant, deliveries[0].id);
    const present = { url: `${receiver.url}/new`, payload_format: "raw", retry_policy: { max_attempts: 2 } };
    await expectStatus(200, tenant.admin.call("PATCH", `/v1/endpoints/${endpoint.id}`, present));

    const underPresent = await terminalDelivery(tenant, (await replay(tenant, dead.id)).id);
    expect(underPresent).toMatchObject({ attempt_count: 2, retry_policy: { max_attempts: 2, delays_seconds: [0.05] } });
    const underGiven = await replay(tenant, dead.id, { retry_policy: { max_attempts: 3 } });
    expect(await terminalDelivery(tenant, underGiven.id)).toMatchObject({
      attempt_count: 3,
      retry_policy: { max_attempts: 3, delays_seconds: [0.05] },
    });
    expect(receiver.received.map(({ path }) => path)).toEqual(["/old", ...Array.from({ length: 5 }, () => "/new")]);
    expect(receiver.received.at(-1)!.body.toString()).toBe('{"id":1}');
  }));

test.concurrent("what has not ended cannot be replayed", () =>
  withReceiver(async (receiver) => {
    receiver.handle((_, response) => void response.writeHead(500).end());
    const tenant = await createTenant(relay.url);
    await createEndpoint(tenant, { url: receiver.url, retry_policy: { delays_seconds: [3600] } });
    const { deliveries } = await publish(tenant);
    const { id } = await failedOnce(tenant, deliveries[0].id);
    const problem = await expectStatus(409, tenant.admin.post(`/v1/deliveries/${id}/replay`));
    expect(problem).toMatchObject({ code: "not_terminal" });
    expect(await readDelivery(tenant, id)).toMatchObject({ replayed_as: null });
  }));
