import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
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
import { createStateDir, OPERATOR_TOKEN, startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { isSignedBy } from "./support/signature.ts";
import { signHeaders } from "./support/signer.ts";

/** Whatever a careless log would print of a request: each of these is refused. */
async function makeRefusedRequests(relay: RelayProcess, tenant: TestTenant, secrets: string[]): Promise<void> {
  for (const secret of secrets) {
    const { admin } = tenant;
    await expectStatus(401, createClient(relay.url, `${secret}x`).get("/v1/events"));
    await expectStatus(404, admin.get(`/v1/endpoints/${encodeURIComponent(secret)}`));
    await expectStatus(422, admin.post("/v1/endpoints", { url: secret }));
    await expectStatus(400, admin.post("/v1/endpoints", `{"url": ${secret}`));
    await expectStatus(422, admin.post("/v1/events", { type: secret, source: secret, payload: secret }));
  }
}

test("no secret is in anything the relay prints, also when it cannot read its own", () =>
  withReceiver(async (receiver) => {
    const stateDir = createStateDir();
    const printed: string[] = [];
    const run = async <T>(env: Record<string, string>, use: (relay: RelayProcess) => Promise<T>): Promise<T> => {
      const relay = await startRelayProcess({ stateDir, env });
      try {
        return await use(relay);
      } finally {
        await relay.stop();
        printed.push(relay.printed());
      }
    };

    /** A publish of the source `shop`, in each run under an id of its own. */
    const publishSigned = async (relay: RelayProcess, signer: { sourceId: string; key: string }) => {
      const body = '{"type":"order.signed","payload":1}';
      return createClient(relay.url, null).post("/v1/events", body, signHeaders(signer, body));
    };
    const { tenant, endpoint, rotated, signers, localKey } = await run({}, async (relay) => {
      const tenant = await createTenant(relay.url);
      const endpoint = await createEndpoint(tenant, { url: receiver.url });
      const rotated = await expectStatus(201, tenant.admin.post(`/v1/endpoints/${endpoint.id}/secrets/rotate`));
      const localKey = readFileSync(join(stateDir, "secrets-key"), "utf8").trim();
      expect(statSync(join(stateDir, "secrets-key")).mode & 0o777).toBe(0o600);
      await terminalDelivery(tenant, (await publish(tenant)).deliveries[0].id);
      const shop = await expectStatus(201, tenant.admin.post("/v1/sources", { name: "shop" }));
      const turned = await expectStatus(201, tenant.admin.post(`/v1/sources/${shop.id}/rotate-key`));
      const signers = [shop, turned].map(({ signing_key: key }) => ({
        sourceId: shop.id as string,
        key: key as string,
      }));
      for (const signer of signers) {
        await expectStatus(202, publishSigned(relay, signer));
        await expectStatus(401, publishSigned(relay, { ...signer, key: endpoint.secret }));
      }
      const shown = [endpoint.secret, ...signers.map(({ key }) => key), tenant.adminKey, OPERATOR_TOKEN];
      await makeRefusedRequests(relay, tenant, shown);
      return { tenant, endpoint, rotated, signers, localKey };
    });

    // With another key no secret can be unwrapped: a fault of ours, told to nobody in detail, and nothing is spent.
    const otherKey = `other:${randomBytes(32).toString("base64")}`;
    const revealPath = `/v1/endpoints/${endpoint.id}/secrets?reveal=true`;
    const waitingId = await run({ SECRETS_KEY: otherKey }, async (relay) => {
      const admin = createClient(relay.url, tenant.adminKey);
      const problem = await expectStatus(500, admin.get(revealPath));
      expect(problem).toMatchObject({ code: "internal_error", request_id: expect.stringMatching(/^req_/) });
      expect(JSON.stringify(problem)).not.toContain("sec_");
      expect(await expectStatus(500, publishSigned(relay, signers[1]!))).toMatchObject({ code: "internal_error" });
      const { deliveries } = await publish({ ...tenant, admin });
      await eventually(async () => relay.printed().includes('"what":"prepare"'));
      const waiting = await expectStatus(200, admin.get(`/v1/deliveries/${deliveries[0].id}`));
      expect(waiting).toMatchObject({ status: "pending", attempt_count: 0, attempts: [] });
      return waiting.id;
    });

    // The first key wraps, every key unwraps: this is how a key is replaced.
    await run({ SECRETS_KEY: `${otherKey},${localKey}` }, async (relay) => {
      const admin = createClient(relay.url, tenant.adminKey);
      await expectStatus(202, admin.post(`/v1/deliveries/${waitingId}/retry`));
      const delivery = await terminalDelivery({ ...tenant, admin }, waitingId);
      expect(delivery).toMatchObject({ status: "succeeded", attempt_count: 1 });
      for (const secret of [endpoint.secret, rotated.secret]) {
        expect(isSignedBy(secret, receiver.received.at(-1)!)).toBe(true);
      }
      const { data } = await expectStatus(200, admin.get(revealPath));
      expect(data.map(({ secret }: any) => secret)).toEqual([rotated.secret, endpoint.secret]);
      for (const signer of signers) await expectStatus(202, publishSigned(relay, signer));
    });

    const all = printed.join("\n");
    expect(all).toContain('"event":"request"');
    expect(all).toContain('"event":"request_fault"');
    // The attempts are in it, with their ids.
    expect(all).toMatch(new RegExp(`"event":"attempt".*"delivery_id":"${waitingId}".*"next":"succeeded"`));
    const bare = (secret: string) => secret.replace(/^(whsec_|\w+:)/, "");
    const secrets = [endpoint.secret, rotated.secret, tenant.adminKey, OPERATOR_TOKEN, localKey, otherKey];
    for (const secret of [...secrets, ...signers.map(({ key }) => key)]) {
      expect(all).not.toContain(bare(secret));
    }
  }));
