import { createExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import worker from "../../../src/index.ts";
import { createTestTenant, type TestTenant } from "../support/api.ts";
import { countingEnv, createCost, type Cost } from "../support/counting.ts";

/** Two real limiters of the test runtime stand in for those of the plan `free`: two requests a key, three a tenant. */
const bindings = env as Env & { TWO_IN_TEN_SECONDS: RateLimit; THREE_IN_TEN_SECONDS: RateLimit };
const limited: Env = {
  ...bindings,
  PUBLISH_LIMITS: "free=3/2 pro=9/9 enterprise=9/9",
  PUBLISHES_PER_KEY_FREE: bindings.TWO_IN_TEN_SECONDS,
  PUBLISHES_PER_TENANT_FREE: bindings.THREE_IN_TEN_SECONDS,
};
const EVENT = JSON.stringify({ type: "a.b", source: "orders", payload: 1 });

async function publish(key: string, bindings: Env = limited, init: RequestInit = {}) {
  const headers = { Authorization: `Bearer ${key}` };
  const request = new Request("http://relay.test/v1/events", { method: "POST", body: EVENT, headers, ...init });
  const response = await worker.fetch(request as never, bindings, createExecutionContext());
  return { status: response.status, headers: response.headers, body: (await response.json()) as any };
}

/** Until one is refused. A period that ends in between lets as many more through, so no count of them is exact. */
async function publishUntilRefused(key: string, most: number) {
  for (let n = 0; n <= 2 * most; n++) {
    const answer = await publish(key);
    if (answer.status !== 202) return { ...answer, accepted: n };
  }
  throw new Error("was never refused");
}

async function createPublisher(): Promise<TestTenant> {
  const tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  return tenant;
}

test("one publish too many of a key is 429 with its headers, stores nothing and makes no trip", async () => {
  const tenant = await createPublisher();
  const refused = await publishUntilRefused(tenant.adminKey, 2);
  expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited", status: 429 } });
  expect(Object.fromEntries(refused.headers)).toMatchObject({
    "retry-after": "10",
    ratelimit: '"key";r=0;t=10',
    "ratelimit-policy": '"key";q=2;w=10, "tenant";q=3;w=10',
    "content-type": "application/problem+json",
  });
  const cost: Cost = createCost();
  const again = await publish(tenant.adminKey, countingEnv(limited, cost));
  if (again.status === 429) expect(cost).toMatchObject({ rowsWritten: 0, ledgerTrips: 0, classA: 0, queueMessages: 0 });
  const { body } = await tenant.api.get("/v1/events");
  expect(body.data).toHaveLength(refused.accepted + (again.status === 202 ? 1 : 0));
});

test("another key of the tenant goes on until the tenant's own limit, another tenant beyond it", async () => {
  const [tenant, other] = await Promise.all([createPublisher(), createPublisher()]);
  const second = await tenant.publishKey((await tenant.api.get("/v1/sources")).body.data[0].id);
  await publishUntilRefused(tenant.adminKey, 2);
  expect((await publish(second)).status).toBe(202);
  const refused = await publishUntilRefused(second, 2);
  expect(refused.body.detail).toMatch(/of this (tenant|key)/);
  expect((await publish(other.adminKey)).status).toBe(202);
});

test("a request that is over the limit is refused before its body is read", async () => {
  const tenant = await createPublisher();
  const full: Env = { ...limited, PUBLISHES_PER_KEY_FREE: { limit: async () => ({ success: false }) } };
  const pull = vi.fn<() => void>();
  const body = new ReadableStream({ pull }, { highWaterMark: 0 });
  expect(await publish(tenant.adminKey, full, { body })).toMatchObject({ status: 429 });
  expect(pull).not.toHaveBeenCalled();
});

test("a limiter that fails refuses nothing, and is logged", async () => {
  const tenant = await createPublisher();
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  const limit = () => Promise.reject(new Error("limiter away"));
  const failing: Env = { ...limited, PUBLISHES_PER_KEY_FREE: { limit }, PUBLISHES_PER_TENANT_FREE: { limit } };
  for (let n = 0; n < 4; n++) expect((await publish(tenant.adminKey, failing)).status).toBe(202);
  expect(logged.mock.calls.filter(([line]) => String(line).includes("count a publish"))).toHaveLength(4);
  logged.mockRestore();
});

test("every limiter that a plan names is bound", async () => {
  for (const plan of ["FREE", "PRO", "ENTERPRISE"] as const) {
    for (const whose of ["TENANT", "KEY"] as const) {
      expect(await (env as Env)[`PUBLISHES_PER_${whose}_${plan}`].limit({ key: "nobody" })).toEqual({ success: true });
    }
  }
});
