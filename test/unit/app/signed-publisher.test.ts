import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import {
  authorizePublisher,
  createPublishConfigCache,
  reloadPublisher,
  type PublishConfigDeps,
  type SignerRef,
} from "../../../src/app/publish/publish-config.ts";
import { findSourcePlace } from "../../../src/app/publish/find-source-place.ts";
import { createSourceKey } from "../../../src/app/source/new-source-key.ts";
import type { SourceKeys } from "../../../src/core/model.ts";
import type { SecretsKeys } from "../../../src/core/secret-box.ts";
import { decodeSigningSecret, signWebhook } from "../../../src/core/signature.ts";

const SECRETS_KEYS: SecretsKeys = [{ id: "k", bytes: new Uint8Array(32).fill(7) }];
const HOUR_MS = 3_600_000;

/** A ledger with one tenant and its source `src_a`, whose keys can be turned, and a count of what it was asked. */
function scene() {
  let now = 0;
  let revision: number | null = 1;
  let drawn = 0;
  let isSuspended = false;
  let keys: SourceKeys = { version: 0, current: null, previous: null, previousValidUntil: null };
  const trips: string[] = [];
  const deps: PublishConfigDeps = {
    now: () => now,
    secretsKeys: SECRETS_KEYS,
    publishConfigs: createPublishConfigCache(),
    async findTenantRevision() {
      trips.push("revision");
      return revision;
    },
    async loadPublishConfig() {
      trips.push("load");
      if (revision === null) return null;
      const source = { id: "src_a", name: "a", allowedEventTypes: ["*"], keys };
      const own = { tenantId: "ten_a", plan: "free" as const, revision, isSuspended };
      return { ...own, key: null, sources: [source], subscriptions: [], eventTypes: [], requiresRegistration: false };
    },
  };
  return {
    deps,
    trips,
    wait: (ms: number) => void (now += ms),
    change: () => void (revision = revision! + 1),
    end: () => void (revision = null),
    suspend: () => void ((isSuspended = true), (revision = revision! + 1)),
    /** Gives back the new key. */
    async rotate(): Promise<Uint8Array> {
      const version = keys.version + 1;
      const randomBytes = (length: number) => new Uint8Array(length).fill(++drawn);
      const place = { tenantId: "ten_a", sourceId: "src_a", version };
      const { wrappedKey, text } = await createSourceKey({ secretsKeys: SECRETS_KEYS, randomBytes }, place);
      const previous = keys.current;
      keys = { version, current: wrappedKey, previous, previousValidUntil: previous && now + 24 * HOUR_MS };
      revision!++;
      const key = decodeSigningSecret(text);
      if (!key.ok) throw new Error(key.error);
      return key.value;
    },
  };
}

async function signedBy(key: Uint8Array, changes: Partial<SignerRef> = {}): Promise<SignerRef> {
  const message = { id: "msg_1", timestampSeconds: 0, body: new TextEncoder().encode("{}") };
  const signature = (await signWebhook([key], message)).slice("v1,".length);
  const signed = { message, signatures: [new Uint8Array(Buffer.from(signature, "base64"))] };
  return { tenantId: "ten_a", sourceId: "src_a", signed, ...changes };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(() => "was not refused").catch((error: unknown) => error);
  return error instanceof AppError ? error.code : String(error);
}

describe("a source that signs", () => {
  test("publishes for itself alone, and once its tenant is remembered without a trip", async () => {
    const { deps, trips, rotate } = scene();
    const ref = await signedBy(await rotate());
    expect(await authorizePublisher(deps, ref)).toMatchObject({ ref, sourceId: "src_a" });
    expect(trips).toEqual(["load"]);
    expect(await authorizePublisher(deps, ref)).toMatchObject({ sourceId: "src_a" });
    expect(trips).toEqual(["load"]);
  });

  test("is refused like one that is not there when it has no key, another's key, or another tenant", async () => {
    const { deps, rotate } = scene();
    const none = await signedBy(new Uint8Array(32));
    expect(await codeOf(authorizePublisher(deps, none))).toBe("invalid_signature");
    const key = await rotate();
    const refs = [
      await signedBy(new Uint8Array(32).fill(99)),
      await signedBy(key, { sourceId: "src_b" }),
      // The key of no source: what an unknown one is verified against must not let anybody in.
      await signedBy(new Uint8Array(32), { sourceId: "src_b" }),
      none,
    ];
    for (const ref of refs) {
      const error = await authorizePublisher(deps, ref).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "invalid_signature", message: expect.stringMatching(/^No live key/) });
    }
  });

  test("signs with the previous key as long as the overlap runs, and no longer, whatever is remembered", async () => {
    const { deps, trips, rotate, wait } = scene();
    const [old, present] = [await signedBy(await rotate()), await signedBy(await rotate())];
    for (const ref of [old, present]) await authorizePublisher(deps, ref);
    wait(24 * HOUR_MS - 1);
    for (const ref of [old, present]) await authorizePublisher(deps, ref);
    expect(trips).toEqual(["load"]);
    wait(1);
    expect(await codeOf(authorizePublisher(deps, old))).toBe("invalid_signature");
    await authorizePublisher(deps, present);
  });

  test("with a key made since is let in, at the price of a look at the revision and a load", async () => {
    const { deps, trips, rotate } = scene();
    await authorizePublisher(deps, await signedBy(await rotate()));
    trips.length = 0;
    await authorizePublisher(deps, await signedBy(await rotate()));
    expect(trips).toEqual(["revision", "load"]);
  });

  test("with a key ended since is let in by what is remembered, and refused when the commit has it read again", async () => {
    const { deps, rotate } = scene();
    const first = await signedBy(await rotate());
    const publisher = await authorizePublisher(deps, first);
    await rotate();
    await rotate();
    expect((await authorizePublisher(deps, first)).config.revision).toBe(publisher.config.revision);
    expect(await codeOf(reloadPublisher(deps, first))).toBe("invalid_signature");
    expect(await codeOf(authorizePublisher(deps, first))).toBe("invalid_signature");
  });

  test("of a suspended tenant hears that only with a signature that holds", async () => {
    const { deps, rotate, suspend } = scene();
    const key = await rotate();
    suspend();
    expect(await codeOf(authorizePublisher(deps, await signedBy(key)))).toBe("tenant_suspended");
    expect(await codeOf(authorizePublisher(deps, await signedBy(new Uint8Array(32))))).toBe("invalid_signature");
  });

  test("of a tenant that has ended is refused as any other", async () => {
    const { deps, rotate, end } = scene();
    const key = await rotate();
    await authorizePublisher(deps, await signedBy(key));
    end();
    expect(await codeOf(authorizePublisher(deps, await signedBy(new Uint8Array(32).fill(9))))).toBe(
      "invalid_signature",
    );
    expect(await codeOf(reloadPublisher(deps, await signedBy(key)))).toBe("invalid_signature");
  });
});

describe("bad signatures", () => {
  test("have the configuration read once for each change, and then cost one row", async () => {
    const { deps, trips, rotate, change } = scene();
    await rotate();
    const bad = await signedBy(new Uint8Array(32).fill(9));
    for (let n = 0; n < 3; n++) expect(await codeOf(authorizePublisher(deps, bad))).toBe("invalid_signature");
    expect(trips).toEqual(["load", "revision", "revision"]);
    change();
    trips.length = 0;
    for (let n = 0; n < 2; n++) expect(await codeOf(authorizePublisher(deps, bad))).toBe("invalid_signature");
    expect(trips).toEqual(["revision", "load", "revision"]);
  });

  test("do not stand in the way of an operator, whose tenant they had remembered", async () => {
    const { deps, trips, rotate } = scene();
    await rotate();
    await codeOf(authorizePublisher(deps, await signedBy(new Uint8Array(32).fill(9))));
    expect(await authorizePublisher(deps, { tenantId: "ten_a" })).toMatchObject({ sourceId: null });
    expect(trips).toEqual(["load"]);
  });
});

test("a key that cannot be unwrapped is our fault, unless another verifies; it is never quoted", async () => {
  const { deps, rotate } = scene();
  const old = await signedBy(await rotate());
  const broken = { ...deps, secretsKeys: [{ id: "other", bytes: new Uint8Array(32) }] as SecretsKeys };
  expect(await codeOf(authorizePublisher(broken, old))).toBe("Error: signing key 1 of src_a: unknown_key");
  // The new key is wrapped by a key that is known, the old one is not.
  const present = await signedBy(await rotate());
  const { config } = await reloadPublisher(deps, present);
  config.sources[0]!.keys.previous!.fill(0);
  await authorizePublisher(deps, present);
  expect(await codeOf(authorizePublisher(deps, old))).toBe("Error: signing key 1 of src_a: corrupt");
});

describe("the place of a source", () => {
  function directory(known: (id: string) => boolean) {
    const asked: string[] = [];
    const sourcePlaces = new Map<string, { tenantId: string; shard: string }>();
    const find = async (id: string) => {
      asked.push(id);
      return known(id) ? { tenantId: "ten_a", shard: "1" } : null;
    };
    return { asked, deps: { sourcePlaces, sourceDirectory: { find } } };
  }

  test("is looked up once, one that nobody knows each time", async () => {
    const { asked, deps } = directory((id) => id === "src_a");
    for (let n = 0; n < 2; n++) {
      expect(await findSourcePlace(deps, "src_a")).toEqual({ tenantId: "ten_a", shard: "1" });
      expect(await findSourcePlace(deps, "src_b")).toBeNull();
    }
    expect(asked).toEqual(["src_a", "src_b", "src_b"]);
  });

  test("is remembered for at most 2,000 sources", async () => {
    const { deps } = directory(() => true);
    for (let n = 0; n <= 2_000; n++) await findSourcePlace(deps, `src_${n}`);
    expect(deps.sourcePlaces.size).toBe(2_000);
    expect(deps.sourcePlaces.has("src_0")).toBe(false);
  });
});
