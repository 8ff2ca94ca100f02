import { createEndpoint } from "../../../src/app/endpoint/create-endpoint.ts";
import type { ShardDeps } from "../../../src/app/deps.ts";
import { createSource } from "../../../src/app/source/create-source.ts";
import { createSubscription } from "../../../src/app/subscription/create-subscription.ts";
import { createTenant } from "../../../src/app/tenant/create-tenant.ts";
import type { Principal } from "../../../src/app/principal.ts";
import { composeCentral, composeShard } from "../../../src/compose.ts";
import { encodeBase64 } from "../../../src/core/base64.ts";
import { contextFor } from "./context.ts";
import { createMemory } from "./isolate-memory.ts";
import { Model } from "./model.ts";
import { createObjects } from "./objects.ts";
import { createQueues } from "./queues.ts";
import { createReceiver, secretBytes } from "./receiver.ts";
import type { Sqlite } from "./sqlite.ts";
import { createBucket, createD1, type Ledger } from "./stores.ts";
import type { Isolate } from "./isolate.ts";
import { World } from "./world.ts";

const STARTS_AT = Date.UTC(2026, 0, 5);
const CRON_MS = 60_000;
/** What an old isolate has begun is over by then, or is cut off. */
const DEPLOY_MS = 30_000;

/** A deployed relay in a world of its own, with one tenant. */
export type Relay = Awaited<ReturnType<typeof createRelay>>;

export function createRelay(seed: number, db: Sqlite, ledger: Ledger) {
  const world = new World(seed, STARTS_AT, createMemory);
  const model = new Model(db);
  const send = createReceiver(world, model, db);
  /** Of its own: modules remember by shard how lately its watchdog was armed. */
  const shard = String(shards++);
  let present = world.createIsolate("worker");
  /** Where requests go: another, when it has died. */
  const worker = () => (present.alive ? present : (present = world.createIsolate("worker")));
  const objects = createObjects(world, () => env, send);
  const env = {
    DB: createD1(world, ledger),
    [`DB_${shard}`]: createD1(world, ledger),
    PAYLOADS: createBucket(world),
    ...createQueues(world, () => env, send, worker),
    WATCHDOG: objects.WATCHDOG,
    LANES: objects.LANES,
    VERSION: { id: "v1" },
    OPERATOR_TOKEN: "operator",
    SECRETS_KEY: `test:${encodeBase64(new Uint8Array(32).fill(7))}`,
    ALLOW_PRIVATE_DESTINATIONS: "false",
    RETENTION_DAYS: "30",
    MAX_PAYLOAD_BYTES: "262144",
    PUBLISH_LIMITS: "off",
    ENDPOINT_QUOTA_FREE: "100",
    ENDPOINT_QUOTA_PRO: "100",
    ENDPOINT_QUOTA_ENTERPRISE: "100",
    RELAY_REGION: "here",
  } as unknown as Env;

  const contextOf = (isolate: Isolate) => contextFor(world, isolate, send);
  const composed = new WeakMap<Isolate, ShardDeps>();
  /** Composing is pure, and dear where it is done for each of a million requests. */
  function depsOf(isolate: Isolate): ShardDeps {
    const deps = composed.get(isolate) ?? composeShard(env, contextOf(isolate), shard);
    composed.set(isolate, deps);
    return deps;
  }
  const principal: Principal = { tenantId: "", scope: "admin", sourceId: null };

  const relay = {
    world,
    model,
    db,
    objects,
    principal,
    /** Runs a use-case in the present isolate, as a request to it would. */
    request<T>(
      work: (deps: ShardDeps) => Promise<T>,
      done: (value: T) => void = () => {},
      refused: (error: unknown) => void = () => {},
    ) {
      const isolate = worker();
      world.invoke(
        isolate,
        () => work(depsOf(isolate)),
        (outcome) => {
          if ("value" in outcome) done(outcome.value);
          else {
            world.log(`refused: ${String(outcome.error)}`);
            world.judge(String(outcome.error));
            refused(outcome.error);
          }
        },
      );
    },
    operate(work: (deps: ReturnType<typeof composeCentral>) => Promise<unknown>) {
      const isolate = worker();
      world.invoke(
        isolate,
        () => work(composeCentral(env, contextOf(isolate))),
        () => {},
      );
    },
    crashWorker() {
      world.kill(worker());
    },
    /** All processes are replaced; the old ones end what they have begun, or are cut off. */
    deploy() {
      const old = worker();
      old.isOld = true;
      present = world.createIsolate("worker");
      world.at(world.now + DEPLOY_MS, null, "end of an old worker", () => world.kill(old));
      for (const slot of [...objects.running("lane"), ...objects.running("watchdog")]) {
        if (world.chance.next() < 0.6) {
          objects.crash(slot);
          continue;
        }
        const isolate = objects.replace(slot);
        world.at(world.now + world.chance.int(1, DEPLOY_MS), null, "end of an old object", () => world.kill(isolate));
      }
    },
    /** What happens at its time without anybody's doing. */
    startCron() {
      world.at(world.now + CRON_MS, null, "cron", () => {
        relay.startCron();
        // Of this shard alone: the central database is the same one.
        world.invoke(
          worker(),
          () => env.WATCHDOG.getByName(`watchdog:${shard}`).arm(0),
          () => {},
        );
      });
    },
  };
  return relay;
}

let shards = 1;

/** Something that is done while nothing goes wrong and nothing else goes on. */
export async function done<T>(relay: Relay, work: (deps: ShardDeps) => Promise<T>): Promise<T> {
  let result: { value: T } | { error: unknown } | null = null;
  relay.request(
    work,
    (value) => (result = { value }),
    (error) => (result = { error }),
  );
  await relay.world.turn();
  await relay.world.run(Infinity);
  const outcome = result as { value: T } | { error: unknown } | null;
  if (outcome === null) throw new Error("no answer");
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** A tenant with a source, and endpoints that get everything it publishes. */
export async function furnish(relay: Relay, endpoints: Record<string, unknown>[]): Promise<void> {
  const { principal, model, world } = relay;
  relay.operate(async (deps) => {
    const own = { ...deps, shards: deps.shards.filter((name) => name !== "0") };
    principal.tenantId = (await createTenant(own, { name: "t", plan: "pro" })).id;
  });
  await world.turn();
  await world.run(Infinity);
  await done(relay, (deps) => createSource(deps, principal, { name: "orders" }));
  for (const fields of endpoints) {
    const { endpoint, secret } = await done(relay, (deps) => createEndpoint(deps, principal, fields));
    model.endpoints.push({
      id: endpoint.id,
      behaviour: "ok",
      secrets: [secretBytes(secret)],
      unknownSecret: false,
      rotating: 0,
    });
    await done(relay, (deps) =>
      createSubscription(deps, principal, { endpoint_id: endpoint.id, event_type_pattern: "*" }),
    );
  }
}
