import { env } from "cloudflare:workers";
import { beforeEach, expect, test } from "vitest";
import type { Endpoint, SigningSecret, Subscription } from "../../../src/core/model.ts";
import { DEFAULT_RETRY_POLICY, mergeRetryPolicy } from "../../../src/core/retry-policy.ts";
import { createEndpointStore } from "../../../src/storage/config/endpoints.ts";
import { createSigningSecretStore } from "../../../src/storage/config/signing-secrets.ts";
import { createSubscriptionStore } from "../../../src/storage/config/subscriptions.ts";
import { createTenantStore } from "../../../src/storage/config/tenants.ts";

// What was computed from a reading must not be written once the reading is out of date.

const POLICY = DEFAULT_RETRY_POLICY;
const OTHER_POLICY = { ...POLICY, jitter: 0.5 };

let serial = 0;
let tenantId: string;
let endpoints: ReturnType<typeof createEndpointStore>;
let subscriptions: ReturnType<typeof createSubscriptionStore>;
let signingSecrets: ReturnType<typeof createSigningSecretStore>;

function secret(slot: 0 | 1, id: string): SigningSecret {
  return { id, slot, wrappedKey: new Uint8Array([1, 2, 255]), activeFrom: 1, activeUntil: null };
}

const ENDPOINT: Endpoint = {
  id: "ep_1",
  url: "https://hooks.example.com/",
  name: null,
  revision: 1,
  orderingMode: "unordered",
  concurrencyCap: null,
  rateLimitPerSecond: null,
  maxHeadHoldSeconds: null,
  onExhausted: "advance",
  route: "queue",
  laneGeneration: 0,
  retryPolicy: POLICY,
  payloadFormat: "envelope",
  sourceSignatures: false,
  headers: [],
  timeoutMs: 15_000,
  pausedAt: null,
  disabledAt: null,
  lastDisabledAt: null,
  disabledReason: null,
  failingSince: null,
  disableAfterFailingSeconds: null,
  quarantinedAt: null,
  createdAt: 1,
};

const SUBSCRIPTION: Subscription = {
  id: "sub_1",
  endpointId: "ep_1",
  eventTypePattern: "*",
  filter: null,
  filterFailure: null,
  entitlementScope: null,
  schemaVersion: null,
  retryPolicy: { max_attempts: 2 },
  disabledAt: null,
  lastDisabledAt: null,
  createdAt: 1,
};

/** The policy that the ledger gives a subscription's deliveries. */
async function effectivePolicy(subscriptionId: string): Promise<unknown> {
  const row = await env.DB.prepare(
    `select p.policy from subscription s join retry_policy p on p.tenant_id = s.tenant_id and p.id = s.retry_policy_id
     where s.tenant_id = ? and s.id = ?`,
  )
    .bind(tenantId, subscriptionId)
    .first<{ policy: string }>();
  return row && JSON.parse(row.policy);
}

beforeEach(async () => {
  tenantId = `ten_stale_${serial++}`;
  endpoints = createEndpointStore(env.DB);
  subscriptions = createSubscriptionStore(env.DB);
  signingSecrets = createSigningSecretStore(env.DB);
  await createTenantStore(env.DB).insert({
    id: tenantId,
    name: "stale",
    plan: "free",
    status: "active",
    endpointQuota: null,
    headerPrefix: null,
    requireRegisteredTypes: false,
    suspendedAt: null,
    shard: "0",
    createdAt: 1,
  });
  const quotas = { free: 1, pro: 0, enterprise: 0 };
  expect(await endpoints.insert(tenantId, ENDPOINT, secret(0, "sec_1"), quotas)).toBe(true);
});

test("a change of policy passes on to the overrides it was computed with", async () => {
  const effective = mergeRetryPolicy(POLICY, SUBSCRIPTION.retryPolicy);
  expect(await subscriptions.insert(tenantId, SUBSCRIPTION, { endpoint: POLICY, effective })).toBe("stored");
  expect(await effectivePolicy("sub_1")).toEqual(effective);

  const found = await endpoints.findWithOverrides(tenantId, "ep_1");
  expect(found?.overrides).toEqual([{ subscriptionId: "sub_1", retryPolicy: { max_attempts: 2 } }]);
  const changed = await endpoints.updateWithPolicy(
    tenantId,
    "ep_1",
    {},
    {
      tenantRevision: found?.tenantRevision ?? 0,
      retryPolicy: OTHER_POLICY,
      effective: [{ subscriptionId: "sub_1", retryPolicy: { ...OTHER_POLICY, max_attempts: 2 } }],
    },
  );
  expect(changed).toMatchObject({ revision: 2, retryPolicy: OTHER_POLICY });
  expect(await effectivePolicy("sub_1")).toEqual({ ...OTHER_POLICY, max_attempts: 2 });
});

test("a change of policy that does not know of a new subscription changes nothing", async () => {
  const found = await endpoints.findWithOverrides(tenantId, "ep_1");
  const effective = mergeRetryPolicy(POLICY, SUBSCRIPTION.retryPolicy);
  await subscriptions.insert(tenantId, SUBSCRIPTION, { endpoint: POLICY, effective });
  const change = { tenantRevision: found?.tenantRevision ?? 0, retryPolicy: OTHER_POLICY, effective: [] };
  expect(await endpoints.updateWithPolicy(tenantId, "ep_1", { name: "n" }, change)).toBeNull();
  expect(await endpoints.find(tenantId, "ep_1")).toEqual(ENDPOINT);
  expect(await effectivePolicy("sub_1")).toEqual(effective);
});

test("a subscription computed from an endpoint's former policy is not stored", async () => {
  const effective = mergeRetryPolicy(OTHER_POLICY, SUBSCRIPTION.retryPolicy);
  expect(await subscriptions.insert(tenantId, SUBSCRIPTION, { endpoint: OTHER_POLICY, effective })).toBe("stale");
  expect(await subscriptions.find(tenantId, "sub_1")).toBeNull();
});

test("a subscription of an endpoint deleted meanwhile is not stored", async () => {
  await endpoints.delete(tenantId, "ep_1", 2);
  expect(await subscriptions.insert(tenantId, SUBSCRIPTION, { endpoint: POLICY, effective: null })).toBe("stale");
});

test("a change of a subscription that was changed meanwhile is not stored", async () => {
  const policies = { endpoint: POLICY, effective: null };
  const plain = { ...SUBSCRIPTION, retryPolicy: null };
  await subscriptions.insert(tenantId, plain, policies);
  expect(await subscriptions.update(tenantId, plain, { ...plain, eventTypePattern: "a" }, policies)).toBe(true);
  expect(await subscriptions.update(tenantId, plain, { ...plain, eventTypePattern: "b" }, policies)).toBe(false);
  expect((await subscriptions.find(tenantId, "sub_1"))?.eventTypePattern).toBe("a");
});

test("a rotation planned before another change of the endpoint changes nothing", async () => {
  expect(await signingSecrets.find(tenantId, "ep_1")).toEqual({ endpointRevision: 1, secrets: [secret(0, "sec_1")] });
  await endpoints.update(tenantId, "ep_1", { name: "n" });
  const current = { id: "sec_1", activeUntil: 9 };
  expect(await signingSecrets.rotate(tenantId, "ep_1", 1, secret(1, "sec_2"), current)).toBe(false);
  expect((await signingSecrets.find(tenantId, "ep_1"))?.secrets).toEqual([secret(0, "sec_1")]);
  expect(await signingSecrets.rotate(tenantId, "ep_1", 2, secret(1, "sec_2"), current)).toBe(true);
  expect((await signingSecrets.find(tenantId, "ep_1"))?.secrets).toEqual([
    { ...secret(0, "sec_1"), activeUntil: 9 },
    secret(1, "sec_2"),
  ]);
});
