import { expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  publish,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";
import { isSignedBy, signaturesOf, verifyJson } from "./support/signature.ts";

const relay = await sharedRelay();

const rotate = ({ admin }: TestTenant, endpointId: string, body?: unknown) =>
  admin.post(`/v1/endpoints/${endpointId}/secrets/rotate`, body);
const listSecrets = async ({ admin }: TestTenant, endpointId: string, query = "") =>
  (await expectStatus(200, admin.get(`/v1/endpoints/${endpointId}/secrets${query}`))).data as any[];

test("under traffic a rotation fails no receiver, whether it knows the old secret or the new one", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const over = new AbortController();
    let published = 0;
    const traffic = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) {
        await publish(tenant);
        published++;
      }
    });
    await receiver.waitFor(40);
    const rotated = await expectStatus(201, rotate(tenant, endpoint.id));
    const answeredAt = Date.now();
    const begunAfter = () =>
      receiver.received.filter(
        ({ headers }) => Date.parse(String(headers["x-webhook-attempt-started-at"])) > answeredAt,
      );
    await eventually(async () => begunAfter().length > 20);
    over.abort();
    await Promise.all(traffic);
    const requests = await receiver.waitFor(published);

    expect(rotated.secret).not.toBe(endpoint.secret);
    for (const request of requests) verifyJson(endpoint.secret, request);
    for (const request of begunAfter()) {
      verifyJson(rotated.secret, request);
      expect(signaturesOf(request)).toHaveLength(2);
    }
    const [first] = requests;
    expect(signaturesOf(first!)).toHaveLength(1);
    expect(isSignedBy(rotated.secret, first!)).toBe(false);
  }));

test("the old secret stays live for the overlap asked for, 24 to 72 hours", async () => {
  const tenant = await createTenant(relay.url);
  const endpoint = await createEndpoint(tenant, { url: "http://127.0.0.1:9" });
  const [old] = await listSecrets(tenant, endpoint.id);
  for (const overlap_hours of [23, 73, "24", -1]) {
    await expectStatus(422, rotate(tenant, endpoint.id, { overlap_hours }));
  }
  const rotated = await expectStatus(201, rotate(tenant, endpoint.id, { overlap_hours: 48 }));
  const lastsMs = Date.parse(rotated.previous.active_until) - Date.parse(rotated.active_from);
  expect(lastsMs).toBe(48 * 3_600_000);
  expect(rotated).toMatchObject({ active_until: null, previous: { id: old.id } });
  expect(await listSecrets(tenant, endpoint.id)).toEqual([
    { id: rotated.id, endpoint_id: endpoint.id, active_from: rotated.active_from, active_until: null },
    { id: old.id, endpoint_id: endpoint.id, active_from: old.active_from, active_until: rotated.previous.active_until },
  ]);
});

test("a third rotation while two secrets live is refused, and forced it ends the oldest at once", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const second = await expectStatus(201, rotate(tenant, endpoint.id));
    expect(await expectStatus(409, rotate(tenant, endpoint.id))).toMatchObject({ code: "rotation_in_progress" });
    const third = await expectStatus(201, rotate(tenant, endpoint.id, { force: true }));
    expect((await listSecrets(tenant, endpoint.id)).map(({ id }) => id)).toEqual([third.id, second.id]);

    const { deliveries } = await publish(tenant);
    const { attempts } = await terminalDelivery(tenant, deliveries[0].id);
    const [request] = receiver.received;
    const signedBy = (secret: string) => isSignedBy(secret, request!);
    expect([endpoint.secret, second.secret, third.secret].map(signedBy)).toEqual([false, true, true]);
    expect(signaturesOf(request!)).toHaveLength(2);
    expect(attempts[0].signing_secret_ids.toSorted()).toEqual([second.id, third.id].toSorted());
  }));

test("of rotations at once one takes effect, and two secrets live", async () => {
  const tenant = await createTenant(relay.url);
  const endpoint = await createEndpoint(tenant, { url: "http://127.0.0.1:9" });
  const answers = await Promise.all(Array.from({ length: 10 }, () => rotate(tenant, endpoint.id)));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
  const winner = answers.find(({ status }) => status === 201)!.body;
  const revealed = await listSecrets(tenant, endpoint.id, "?reveal=true");
  expect(revealed.map(({ secret }) => secret)).toEqual([winner.secret, endpoint.secret]);
});

test("forced rotations at once leave two live, both as they were told", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const answers = await Promise.all(Array.from({ length: 6 }, () => rotate(tenant, endpoint.id, { force: true })));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
    const told = new Map(answers.map(({ body }) => [body.id, body.secret]));
    const revealed = await listSecrets(tenant, endpoint.id, "?reveal=true");
    expect(revealed).toHaveLength(2);
    for (const { id, secret } of revealed) expect(secret).toBe(told.get(id));
    await publish(tenant);
    const [request] = await receiver.waitFor(1);
    for (const { secret } of revealed) verifyJson(secret, request!);
  }));

test("a secret is shown when it is made, and afterwards to an admin who asks to reveal it", async () => {
  const tenant = await createTenant(relay.url);
  const endpoint = await createEndpoint(tenant, { url: "http://127.0.0.1:9" });
  expect(endpoint.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const { key } = await expectStatus(201, tenant.admin.post("/v1/api-keys", { scope: "read" }));
  const reader = createClient(relay.url, key);
  const path = `/v1/endpoints/${endpoint.id}`;
  for (const answer of [
    await expectStatus(200, tenant.admin.get(path)),
    await expectStatus(200, tenant.admin.get("/v1/endpoints")),
    await expectStatus(200, tenant.admin.get(`${path}/secrets`)),
    await expectStatus(200, reader.get(`${path}/secrets`)),
    await expectStatus(200, tenant.admin.call("PATCH", path, { name: "renamed" })),
  ]) {
    expect(JSON.stringify(answer)).not.toContain("whsec_");
  }
  await expectStatus(403, reader.get(`${path}/secrets?reveal=true`));
  expect((await listSecrets(tenant, endpoint.id, "?reveal=true"))[0].secret).toBe(endpoint.secret);
});
