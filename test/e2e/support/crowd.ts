import { randomBytes } from "node:crypto";
import { createId } from "../../../src/core/ids.ts";
import { IV_BYTES, parseSecretsKeys, wrapSecret } from "../../../src/core/secret-box.ts";
import { secretContext } from "../../../src/core/signing-secrets.ts";
import { createEndpoint, expectStatus, type TestTenant } from "./client.ts";
import { writeLedger } from "./faults.ts";

const ROWS_AT_ONCE = 2_500;

interface Member {
  id: string;
  /** Its path at the receiver. */
  name: string;
  secretId: string;
  subscriptionId: string;
  url: string;
  isStrict: boolean;
  wrappedKey: string;
}

/**
 * Endpoints by the thousand, each with a secret of its own and subscribed to everything, every third of them strict: as the API
 * would make them one at a time, which takes minutes. For a relay whose entry lets a test write into its ledger.
 */
export async function createCrowd(
  relayUrl: string,
  tenant: TestTenant,
  secretsKey: string,
  count: number,
  settings: { url: string } & Record<string, unknown>,
): Promise<Member[]> {
  const model = await createEndpoint(tenant, settings);
  const keys = parseSecretsKeys(secretsKey);
  if (!keys.ok) throw new Error(keys.error);
  const members = await Promise.all(
    Array.from({ length: count }, async (_, n): Promise<Member> => {
      const [id, secretId] = [createId("ep", randomBytes(10)), createId("sec", randomBytes(10))];
      const context = secretContext(tenant.id, id, secretId);
      const wrapped = await wrapSecret(keys.value, randomBytes(32), randomBytes(IV_BYTES), context);
      return {
        id,
        secretId,
        subscriptionId: createId("sub", randomBytes(10)),
        name: String(n),
        url: `${settings.url}/${n}`,
        isStrict: n % 3 === 0,
        wrappedKey: Buffer.from(wrapped).toString("hex"),
      };
    }),
  );
  for (let i = 0; i < count; i += ROWS_AT_ONCE) {
    const rows = JSON.stringify(members.slice(i, i + ROWS_AT_ONCE));
    await writeLedger(
      relayUrl,
      `insert into endpoint (tenant_id, id, url, ordering_mode, route, retry_policy_id, timeout_ms, created_at)
       select e.tenant_id, j.value ->> 'id', j.value ->> 'url', iif(j.value ->> 'isStrict', 'strict', 'unordered'),
         iif(j.value ->> 'isStrict', 'lane', 'queue'), e.retry_policy_id, e.timeout_ms, e.created_at
       from json_each(?) j cross join endpoint e on e.tenant_id = ? and e.id = ?`,
      rows,
      tenant.id,
      model.id,
    );
    await writeLedger(
      relayUrl,
      `insert into signing_secret (tenant_id, endpoint_id, slot, id, wrapped_key, active_from)
       select ?2, j.value ->> 'id', 0, j.value ->> 'secretId', unhex(j.value ->> 'wrappedKey'), 0 from json_each(?1) j`,
      rows,
      tenant.id,
    );
    await writeLedger(
      relayUrl,
      `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at)
       select ?2, j.value ->> 'subscriptionId', j.value ->> 'id', '*', 0 from json_each(?1) j`,
      rows,
      tenant.id,
    );
  }
  // The last change goes through the relay, which then knows that there are others.
  await expectStatus(204, tenant.admin.call("DELETE", `/v1/endpoints/${model.id}`));
  return members;
}
