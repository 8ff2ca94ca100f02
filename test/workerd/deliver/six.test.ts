import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { createInFlight } from "../../../src/app/deliver/in-flight.ts";
import { deliver, type DeliverDeps } from "../../../src/app/deliver/deliver.ts";
import { composeDeliver } from "../../../src/compose.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import { Sender } from "../../../src/sender/sender.ts";
import { createTestTenant } from "../support/api.ts";
import { gate } from "../support/scene.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";

/** On Cloudflare a seventh request of an invocation waits until one of six has its headers. No local run shows that. */
const MAX_WAITING = 6;

interface Invocation {
  waiting: number;
  most: number;
  queued: (() => void)[];
}

const createInvocation = (): Invocation => ({ waiting: 0, most: 0, queued: [] });

afterEach(() => vi.restoreAllMocks());

test("receivers that hang leave the six connections of an invocation to others in the same messages", async () => {
  const { open: letGo, opened } = gate();
  const consumer = createInvocation();
  // Whose request is made: a sender's while it runs up to its fetch, which it does in one turn.
  let current = consumer;
  const senders: Invocation[] = [];
  const send = Sender.prototype.send;
  vi.spyOn(Sender.prototype, "send").mockImplementation(function (this: Sender, request) {
    const own = createInvocation();
    senders.push(own);
    current = own;
    const sending = send.call(this, request);
    current = consumer;
    return sending;
  });
  vi.spyOn(globalThis, "fetch").mockImplementation(async (url) => {
    const own = current;
    if (own.waiting >= MAX_WAITING) await new Promise<void>((resolve) => own.queued.push(resolve));
    own.most = Math.max(own.most, ++own.waiting);
    try {
      if (new URL(url as string).hostname.startsWith("hole")) await opened;
      return new Response("ok");
    } finally {
      own.waiting--;
      own.queued.shift()?.();
    }
  });

  const tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  const create = async (host: string): Promise<string> => {
    const { body } = await tenant.api.post("/v1/endpoints", { url: `https://${host}.example/hook` });
    await tenant.api.post("/v1/subscriptions", { endpoint_id: body.id, event_type_pattern: "*" });
    return body.id;
  };
  const holes = [await create("hole1"), await create("hole2"), await create("hole3"), await create("hole4")];
  const healthy = [await create("healthy1"), await create("healthy2")];
  const context = createTestContext();
  const shard = shardDeps(tenant, context);
  const events: string[] = [];
  for (let n = 0; n < 10; n++)
    events.push((await publish(shard, tenant, { type: "order.created", source: "orders" })).id);
  // What hangs comes first in every message.
  const calls = events.flatMap((eventId) =>
    [...holes, ...healthy].map((endpointId) => ({
      tenantId: tenant.id,
      deliveryId: deliveryId({ eventId, endpointId, replayNo: 0 }),
      attemptNumber: 1,
    })),
  );
  let ended = false;
  const deps: DeliverDeps = {
    ...composeDeliver(env as Env, context.context, tenant.shard, "queue"),
    inFlight: createInFlight(),
    ringLater: () => {},
    // Those for which there is no room wait for as long as the receivers hang.
    now: () => Date.now() + (ended ? 60_000 : 0),
  };
  await deliver(deps, calls);

  const succeeded = async () => {
    const { data } = (await tenant.api.get("/v1/deliveries?limit=100&status=succeeded")).body;
    return data.map(({ endpoint_id }: any) => endpoint_id);
  };
  await expect.poll(succeeded, { timeout: 10_000 }).toHaveLength(healthy.length * events.length);
  expect(new Set(await succeeded())).toEqual(new Set(healthy));
  // Eight of each that hangs are all there is room for; they wait each in an invocation of its own.
  expect(senders.filter(({ waiting }) => waiting > 0)).toHaveLength(holes.length * 8);
  expect(Math.max(...senders.map(({ most }) => most))).toBeLessThanOrEqual(2);
  expect(consumer.most).toBe(0);

  ended = true;
  letGo();
  await context.settled();
});
