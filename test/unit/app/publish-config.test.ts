import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import {
  authorizePublisher,
  createPublishConfigCache,
  reloadPublisher,
  type PublishConfigDeps,
  type PublisherRef,
} from "../../../src/app/publish/publish-config.ts";

type Rows = NonNullable<Awaited<ReturnType<PublishConfigDeps["loadPublishConfig"]>>>;
type Key = Rows["key"];

const keyRef = (n: number): PublisherRef => ({ keyHash: Uint8Array.of(n >> 8, n & 0xff) });
const ADMIN: Key = { scope: "admin", sourceId: null };

const NO_KEYS = { version: 0, current: null, previous: null, previousValidUntil: null };

/** A ledger of keys and tenants; its tenants' configuration names its revision in the source. */
function scene() {
  const revisions = new Map<string, number>();
  const keys = new Map<string, { tenantId: string; key: Key }>();
  const loads: string[] = [];
  const suspended = new Set<string>();
  const nameOf = (ref: PublisherRef) => ("keyHash" in ref ? ref.keyHash.join(".") : ref.tenantId);
  const deps: PublishConfigDeps = {
    now: () => 0,
    secretsKeys: [{ id: "k", bytes: new Uint8Array(32) }],
    publishConfigs: createPublishConfigCache(),
    findTenantRevision: async (tenantId) => revisions.get(tenantId) ?? null,
    async loadPublishConfig(ref) {
      loads.push(nameOf(ref));
      const known = "keyHash" in ref ? keys.get(nameOf(ref)) : { tenantId: ref.tenantId, key: null };
      const revision = revisions.get(known?.tenantId ?? "");
      if (!known || revision === undefined) return null;
      const source = {
        id: `src_${revision}`,
        name: "shop",
        allowedEventTypes: ["order.*", "user.made"],
        keys: NO_KEYS,
      };
      const isSuspended = suspended.has(known.tenantId);
      const { tenantId, key } = known;
      return {
        tenantId,
        plan: "free",
        revision,
        isSuspended,
        key,
        sources: [source],
        subscriptions: [],
        eventTypes: [],
        requiresRegistration: false,
      };
    },
  };
  return {
    deps,
    loads,
    suspended,
    write: (tenantId: string) => void revisions.set(tenantId, (revisions.get(tenantId) ?? 0) + 1),
    grant: (ref: PublisherRef, tenantId: string, key: Key) => void keys.set(nameOf(ref), { tenantId, key }),
    revoke: (ref: PublisherRef) => void keys.delete(nameOf(ref)),
  };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(() => "was not refused").catch((error: unknown) => error);
  return error instanceof AppError ? error.code : String(error);
}

describe("who publishes", () => {
  test("an admin key and an operator publish for any source, a publish key for its own", async () => {
    const { deps, write, grant } = scene();
    write("ten_a");
    grant(keyRef(1), "ten_a", ADMIN);
    grant(keyRef(2), "ten_a", { scope: "publish", sourceId: "src_1" });
    expect(await authorizePublisher(deps, keyRef(1))).toMatchObject({ ref: keyRef(1), sourceId: null });
    expect(await authorizePublisher(deps, keyRef(2))).toMatchObject({ ref: keyRef(2), sourceId: "src_1" });
    expect(await authorizePublisher(deps, { tenantId: "ten_a" })).toMatchObject({ sourceId: null });
  });

  test("a key of nobody is unauthorized, a read key forbidden, remembered or not", async () => {
    const { deps, write, grant } = scene();
    write("ten_a");
    grant(keyRef(1), "ten_a", { scope: "read", sourceId: null });
    for (let n = 0; n < 2; n++) {
      expect(await codeOf(authorizePublisher(deps, keyRef(1)))).toBe("forbidden");
      expect(await codeOf(authorizePublisher(deps, keyRef(9)))).toBe("unauthorized");
    }
  });

  test("nobody publishes for a suspended tenant, which is remembered like all else and proved at the price of a row", async () => {
    const { deps, loads, suspended, write, grant } = scene();
    write("ten_a");
    grant(keyRef(1), "ten_a", ADMIN);
    await authorizePublisher(deps, keyRef(1));
    suspended.add("ten_a");
    write("ten_a");
    // As a commit does that finds another revision.
    expect(await codeOf(reloadPublisher(deps, keyRef(1)))).toBe("tenant_suspended");
    for (const ref of [keyRef(1), { tenantId: "ten_a" }]) {
      expect(await codeOf(authorizePublisher(deps, ref))).toBe("tenant_suspended");
    }
    expect(loads).toHaveLength(3);
    suspended.delete("ten_a");
    write("ten_a");
    expect((await authorizePublisher(deps, keyRef(1))).config.revision).toBe(3);
  });

  test("a source allows what one of its patterns matches and nothing else", async () => {
    const { deps, write } = scene();
    write("ten_a");
    const [source] = (await authorizePublisher(deps, { tenantId: "ten_a" })).config.sources;
    const asked = ["order.paid", "order.paid.eu", "user.made", "user.left", "order"];
    expect(asked.filter((type) => source!.allows(type))).toEqual(["order.paid", "order.paid.eu", "user.made"]);
  });
});

describe("what is remembered", () => {
  test("costs no trip, and is compiled once a tenant", async () => {
    const { deps, loads, write, grant } = scene();
    write("ten_a");
    grant(keyRef(1), "ten_a", ADMIN);
    const first = await authorizePublisher(deps, keyRef(1));
    const second = await authorizePublisher(deps, keyRef(1));
    expect(second.config).toBe(first.config);
    expect(loads).toEqual(["0.1"]);
  });

  test("may be stale until a commit says so: a reload brings the new revision, for all keys of the tenant", async () => {
    const { deps, loads, write, grant } = scene();
    write("ten_a");
    grant(keyRef(1), "ten_a", ADMIN);
    grant(keyRef(2), "ten_a", ADMIN);
    await authorizePublisher(deps, keyRef(1));
    await authorizePublisher(deps, keyRef(2));
    write("ten_a");
    expect((await authorizePublisher(deps, keyRef(1))).config.revision).toBe(1);
    expect((await reloadPublisher(deps, keyRef(1))).config).toMatchObject({ revision: 2, sources: [{ id: "src_2" }] });
    // What is known of the other key is of the first revision: it proves nothing about the second.
    expect((await authorizePublisher(deps, keyRef(2))).config.revision).toBe(2);
    expect(loads).toEqual(["0.1", "0.2", "0.1", "0.2"]);
  });

  test("of a key that a reload finds revoked is forgotten", async () => {
    const { deps, write, grant, revoke } = scene();
    write("ten_a");
    grant(keyRef(1), "ten_a", ADMIN);
    await authorizePublisher(deps, keyRef(1));
    revoke(keyRef(1));
    expect(await codeOf(reloadPublisher(deps, keyRef(1)))).toBe("unauthorized");
    expect(await codeOf(authorizePublisher(deps, keyRef(1)))).toBe("unauthorized");
  });

  test("of one tenant is not another's", async () => {
    const { deps, write, grant } = scene();
    write("ten_a");
    write("ten_b");
    grant(keyRef(1), "ten_a", ADMIN);
    grant(keyRef(2), "ten_b", ADMIN);
    for (let n = 0; n < 2; n++) {
      expect((await authorizePublisher(deps, keyRef(1))).config.tenantId).toBe("ten_a");
      expect((await authorizePublisher(deps, keyRef(2))).config.tenantId).toBe("ten_b");
    }
  });

  test("is at most 200 tenants: the one loaded longest ago is loaded again", async () => {
    const { deps, loads, write } = scene();
    for (let n = 0; n <= 200; n++) {
      write(`ten_${n}`);
      await authorizePublisher(deps, { tenantId: `ten_${n}` });
    }
    expect(deps.publishConfigs.configs.size).toBe(200);
    loads.length = 0;
    await authorizePublisher(deps, { tenantId: "ten_1" });
    expect(loads).toEqual([]);
    await authorizePublisher(deps, { tenantId: "ten_0" });
    expect(loads).toEqual(["ten_0"]);
  });

  test("is at most two million characters of filters: of tenants with more the one loaded longest ago is loaded again", async () => {
    const { deps, loads, write } = scene();
    const plain = { endpointId: "ep_a", eventTypePattern: "*", maxAgeSeconds: 1, endpointDisabled: false, lane: null };
    const any = { entitlementScope: [], schemaVersion: null };
    const { loadPublishConfig } = deps;
    deps.loadPublishConfig = async (ref) => {
      const filter = "x".repeat("tenantId" in ref && ref.tenantId === "ten_small" ? 1 : 700_000);
      const rows = await loadPublishConfig(ref);
      return rows && { ...rows, subscriptions: [{ ...plain, ...any, id: "sub_a", filter }] };
    };
    for (const tenantId of ["ten_a", "ten_small", "ten_b", "ten_c"]) {
      write(tenantId);
      await authorizePublisher(deps, { tenantId });
    }
    expect([...deps.publishConfigs.configs.keys()]).toEqual(["ten_small", "ten_b", "ten_c"]);
    loads.length = 0;
    await authorizePublisher(deps, { tenantId: "ten_b" });
    expect(loads).toEqual([]);
    await authorizePublisher(deps, { tenantId: "ten_a" });
    expect(loads).toEqual(["ten_a"]);
    expect([...deps.publishConfigs.configs.keys()]).toEqual(["ten_c", "ten_a"]);
  });

  test("is at most 2,000 keys; a key loaded again counts as new and costs no other its place", async () => {
    const { deps, loads, write, grant } = scene();
    write("ten_a");
    for (let n = 0; n <= 2_000; n++) grant(keyRef(n), "ten_a", ADMIN);
    for (let n = 0; n < 2_000; n++) await authorizePublisher(deps, keyRef(n));
    await reloadPublisher(deps, keyRef(1));
    loads.length = 0;
    await authorizePublisher(deps, keyRef(0));
    expect(loads).toEqual([]);
    // In the place of keys 0 and 2, which are now those loaded longest ago.
    await authorizePublisher(deps, keyRef(2_000));
    await authorizePublisher(deps, keyRef(0));
    expect(deps.publishConfigs.keys.size).toBe(2_000);
    loads.length = 0;
    await authorizePublisher(deps, keyRef(1));
    expect(loads).toEqual([]);
    await authorizePublisher(deps, keyRef(2));
    expect(loads).toEqual(["0.2"]);
  });
});
