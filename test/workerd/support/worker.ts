import { env, exports } from "cloudflare:workers";
import type { DeliveryCall } from "../../../src/app/deliver/delivery-call.ts";
import { deliver, type DeliverDeps } from "../../../src/app/deliver/deliver.ts";
import { authorizePublisher } from "../../../src/app/publish/publish-config.ts";
import type { Accepted } from "../../../src/app/publish/accepted.ts";
import { publishEvents } from "../../../src/app/publish/publish-events.ts";
import type { ShardDeps } from "../../../src/app/deps.ts";
import { composeDeliver, composeShard } from "../../../src/compose.ts";
import type { TestTenant } from "./api.ts";

/** Holds back what goes on after an answer, until a test asks for it. */
export interface TestContext {
  context: Pick<ExecutionContext, "waitUntil" | "exports">;
  /** Resolves when everything that was left to the background is done. */
  settled(): Promise<void>;
}

export function createTestContext(): TestContext {
  const work: Promise<unknown>[] = [];
  return {
    context: { waitUntil: (part) => void work.push(part), exports: exports as ExecutionContext["exports"] },
    async settled() {
      while (work.length > 0) await work.shift();
    },
  };
}

/** The use-cases of a tenant's shard over real bindings, with `announce` kept from ringing unless a test rings. */
export function shardDeps(tenant: TestTenant, context: TestContext, bindings: Env = env as Env): ShardDeps {
  const quiet = { announce: () => {}, announceFanOuts: () => {}, ringLater: () => {} };
  return { ...composeShard(bindings, context.context, tenant.shard), ...quiet };
}

export function deliverDeps(tenant: TestTenant, context: TestContext, bindings: Env = env as Env): DeliverDeps {
  return { ...composeDeliver(bindings, context.context, tenant.shard, "queue"), ringLater: () => {} };
}

/** Publishes one event for the operator, without a doorbell; `variants` have the same payload unless they say another. */
export async function publish(
  deps: ShardDeps,
  tenant: TestTenant,
  fields: Record<string, unknown>,
  payload = '{"n":1}',
  variants: (number | [schemaVersion: number, payload: string])[] = [],
): Promise<Accepted> {
  const publisher = await authorizePublisher(deps, { tenantId: tenant.id });
  const [result] = await publishEvents(
    deps,
    publisher,
    [
      {
        fields,
        payload: new TextEncoder().encode(payload),
        payloadIsJson: true,
        contentType: "application/json",
        contentEncoding: null,
        variants: variants.map((variant) => {
          const [schema_version, bytes] = typeof variant === "number" ? [variant, payload] : variant;
          return { fields: { schema_version }, payload: new TextEncoder().encode(bytes) };
        }),
      },
    ],
    null,
  );
  if (result instanceof Error) throw result;
  return result!;
}

/** Answers one doorbell and waits until what came of it is on record. */
export async function attempt(deps: DeliverDeps, context: TestContext, call: DeliveryCall): Promise<void> {
  await deliver(deps, [call]);
  await context.settled();
}
