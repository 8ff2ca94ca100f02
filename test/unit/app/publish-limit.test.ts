import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import { authorizePublisher, createPublishConfigCache } from "../../../src/app/publish/publish-config.ts";
import { admitPublisher, RateLimited, type PublishLimitDeps } from "../../../src/app/publish/publish-limit.ts";
import { rateLimitHeaders } from "../../../src/http/rate-limit-headers.ts";

const LIMITS = {
  free: { perTenant: 3, perKey: 2 },
  pro: { perTenant: 30, perKey: 20 },
  enterprise: { perTenant: 300, perKey: 200 },
};
const KEY_A = { keyHash: Uint8Array.of(1) };
const KEY_B = { keyHash: Uint8Array.of(2) };

/** Two keys of one tenant, and limiters whose period never ends. */
function scene() {
  const keys = new Set(["1", "2"]);
  const counts = new Map<string, number>();
  const faults: string[] = [];
  const state = { now: 0, plan: "free" as keyof typeof LIMITS, trips: 0, limiterFails: false };
  const deps: PublishLimitDeps = {
    now: () => state.now,
    publishLimits: LIMITS,
    secretsKeys: [{ id: "k", bytes: new Uint8Array(32) }],
    findTenantRevision: async () => 1,
    publishConfigs: createPublishConfigCache(),
    async loadPublishConfig(ref) {
      state.trips++;
      if (!("keyHash" in ref) || !keys.has(ref.keyHash.join())) return null;
      const key = { scope: "admin" as const, sourceId: null };
      const own = { tenantId: "ten_a", plan: state.plan, revision: 1, isSuspended: false };
      return { ...own, key, sources: [], subscriptions: [], eventTypes: [], requiresRegistration: false };
    },
    async countPublish(plan, whose, id) {
      if (state.limiterFails) throw new Error("limiter away");
      const name = `${plan}/${whose}/${id}`;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return count <= (whose === "key" ? LIMITS[plan].perKey : LIMITS[plan].perTenant);
    },
    logFault: (what) => void faults.push(what),
  };
  async function publish(ref: typeof KEY_A): Promise<string> {
    try {
      await admitPublisher(deps, await authorizePublisher(deps, ref));
      return "admitted";
    } catch (error) {
      if (error instanceof RateLimited) return `over the limit of the ${error.exceeded}`;
      if (error instanceof AppError) return error.code;
      throw error;
    }
  }
  return { deps, state, counts, faults, publish, revoke: (key: string) => keys.delete(key) };
}

describe("a publish request", () => {
  test("counts for its key, then for its tenant; a key over its own limit leaves the tenant's alone", async () => {
    const { publish, counts } = scene();
    const first = [await publish(KEY_A), await publish(KEY_A), await publish(KEY_A), await publish(KEY_A)];
    expect(first).toEqual(["admitted", "admitted", "over the limit of the key", "over the limit of the key"]);
    expect(counts.get("free/tenant/ten_a")).toBe(2);
    expect(await publish(KEY_B)).toBe("admitted");
    expect(await publish(KEY_B)).toBe("over the limit of the tenant");
  });

  test("of a token of nobody counts for nothing", async () => {
    const { publish, counts } = scene();
    expect(await publish({ keyHash: Uint8Array.of(9) })).toBe("unauthorized");
    expect(counts.size).toBe(0);
  });

  test("goes on when the limiter fails, which is logged", async () => {
    const { publish, state, faults } = scene();
    state.limiterFails = true;
    for (let n = 0; n < 5; n++) expect(await publish(KEY_A)).toBe("admitted");
    expect(faults).toEqual(Array.from({ length: 5 }, () => "count a publish"));
  });

  test("counts for nothing where limits are off", async () => {
    const { deps, publish, counts } = scene();
    deps.publishLimits = null;
    for (let n = 0; n < 5; n++) expect(await publish(KEY_A)).toBe("admitted");
    expect(counts.size).toBe(0);
  });
});

describe("a refusal", () => {
  test("reads the key afresh once a period, however many there are", async () => {
    const { publish, state } = scene();
    for (let n = 0; n < 2; n++) await publish(KEY_A);
    expect(state.trips).toBe(1);
    await Promise.all(Array.from({ length: 50 }, () => publish(KEY_A)));
    expect(state.trips).toBe(2);
    state.now = 10_000;
    await Promise.all(Array.from({ length: 50 }, () => publish(KEY_A)));
    expect(state.trips).toBe(3);
  });

  test("tells a key revoked meanwhile that it is", async () => {
    const { publish, revoke } = scene();
    for (let n = 0; n < 2; n++) await publish(KEY_A);
    revoke("1");
    expect(await publish(KEY_A)).toBe("unauthorized");
    expect(await publish(KEY_A)).toBe("unauthorized");
  });

  test("does not stand when the tenant's plan has grown", async () => {
    const { publish, state } = scene();
    for (let n = 0; n < 2; n++) await publish(KEY_A);
    state.plan = "pro";
    for (let n = 0; n < 20; n++) expect(await publish(KEY_A)).toBe("admitted");
    expect(await publish(KEY_A)).toBe("over the limit of the key");
  });

  test("says in headers which limit, what all are, and when to come back", () => {
    expect(rateLimitHeaders(new RateLimited("key", LIMITS.free))).toEqual({
      "Retry-After": "10",
      RateLimit: '"key";r=0;t=10',
      "RateLimit-Policy": '"key";q=2;w=10, "tenant";q=3;w=10',
    });
    expect(rateLimitHeaders(new RateLimited("tenant", LIMITS.pro))).toMatchObject({ RateLimit: '"tenant";r=0;t=10' });
    expect(rateLimitHeaders(new AppError("not_found", "no"))).toEqual({});
  });
});
