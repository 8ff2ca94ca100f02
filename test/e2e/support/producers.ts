import { expect } from "vitest";
import { createClient, createTenant, expectStatus, listAll, type Answer, type TestTenant } from "./client.ts";
import type { SharedRelay } from "./relay-process.ts";
import { signHeaders, type Signer } from "./signer.ts";

/** A source with its key, and the tenant it belongs to. */
export interface Producer extends Signer {
  tenant: TestTenant;
}

/** What is published unless a test says otherwise. */
export const BODY = '{"type": "order.created", "payload": {"order": 42}}';

/** Producers that sign, at this relay. */
export function producersAt(relay: SharedRelay) {
  const keys: string[] = [];

  async function createSigner(tenant: TestTenant, source: Record<string, unknown>): Promise<Producer> {
    const { id, signing_key } = await expectStatus(201, tenant.admin.post("/v1/sources", source));
    keys.push(signing_key);
    return { tenant, sourceId: id, key: signing_key };
  }

  /** Without a token: the signature is all there is. */
  const send = (path: string, body: string | Buffer, headers: Record<string, string>): Promise<Answer> =>
    createClient(relay.url, null).post(path, body, headers);

  return {
    createSigner,
    /** The source `shop` of a tenant of its own. */
    createProducer: async (source: Record<string, unknown> = {}): Promise<Producer> =>
      createSigner(await createTenant(relay.url), { name: "shop", ...source }),
    async rotate({ tenant, sourceId }: Producer, body: object = {}): Promise<Producer> {
      const rotated = await expectStatus(201, tenant.admin.post(`/v1/sources/${sourceId}/rotate-key`, body));
      keys.push(rotated.signing_key);
      return { tenant, sourceId, key: rotated.signing_key };
    },
    send,
    publish: (signer: Signer, options: Parameters<typeof signHeaders>[2] = {}, body = BODY) =>
      send("/v1/events", body, signHeaders(signer, body, options)),
    eventsOf: ({ tenant }: Producer) => listAll(tenant, "/v1/events"),
    /** At the end: whatever was done, none of their keys was printed. */
    expectNoKeyPrinted() {
      expect(keys.length).toBeGreaterThan(10);
      for (const key of keys) expect(relay.printed()).not.toContain(key.slice("whsec_".length));
    },
  };
}
