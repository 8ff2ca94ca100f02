import { env } from "cloudflare:workers";
import { deliveryId, parseDeliveryId, type DeliveryRef } from "../../../src/core/ids.ts";
import type { DeliverDeps } from "../../../src/app/deliver/deliver.ts";
import { shardsOf } from "../../../src/compose.ts";
import { createTestTenant, type TestTenant } from "./api.ts";
import { createTestContext, deliverDeps, publish, shardDeps, type TestContext } from "./worker.ts";

/** A tenant with a source, an endpoint and a subscription to everything, and one event that was published and not rung for. */
export interface Scene {
  tenant: TestTenant;
  endpointId: string;
  db: D1Database;
  context: TestContext;
  deps: DeliverDeps;
  /** Publishes one more event and gives back its delivery. */
  publishOne(fields?: Record<string, unknown>): Promise<SceneDelivery>;
}

export interface SceneDelivery {
  id: string;
  ref: DeliveryRef & { tenantId: string };
  call(attemptNumber: number): { tenantId: string; deliveryId: string; attemptNumber: number };
  /** As the API shows it, with its attempts. */
  read(): Promise<any>;
}

export async function createScene(endpoint: Record<string, unknown> = {}): Promise<Scene> {
  const tenant = await createTestTenant();
  await tenant.api.post("/v1/sources", { name: "orders" });
  const created = await tenant.api.post("/v1/endpoints", { url: "https://consumer.example/hook", ...endpoint });
  await tenant.api.post("/v1/subscriptions", { endpoint_id: created.body.id, event_type_pattern: "*" });
  const context = createTestContext();
  const shard = shardDeps(tenant, context);
  return {
    tenant,
    endpointId: created.body.id,
    db: shardsOf(env as Env).get(tenant.shard)!,
    context,
    deps: deliverDeps(tenant, context),
    async publishOne(fields = {}) {
      const event = await publish(shard, tenant, { type: "order.created", source: "orders", ...fields });
      const id = deliveryId({ eventId: event.id, endpointId: created.body.id, replayNo: 0 });
      const ref = parseDeliveryId(id);
      if (!ref.ok) throw new Error(id);
      return {
        id,
        ref: { tenantId: tenant.id, ...ref.value },
        call: (attemptNumber) => ({ tenantId: tenant.id, deliveryId: id, attemptNumber }),
        read: async () => (await tenant.api.get(`/v1/deliveries/${id}`)).body,
      };
    },
  };
}

/** Takes away all that a tenant has in the ledger: nothing that waits is left to the real watchdog. */
export async function empty({ db, tenant }: Pick<Scene, "db"> & { tenant: { id: string } }): Promise<void> {
  const tables = ["attempt", "delivery", "event"];
  await db.batch(tables.map((table) => db.prepare(`delete from ${table} where tenant_id = ?`).bind(tenant.id)));
}

/**
 * Ends what tests have left to do in a database: queues' work stands in one index whosever it is, what reads it up to a limit would
 * find theirs, and the real watchdog would go on with it under whatever test comes then.
 */
export async function endAllOpen(db: D1Database): Promise<void> {
  await db.batch([
    db
      .prepare(
        `update delivery set status = 'cancelled', final_outcome = 'cancelled', terminal_at = ?, next_attempt_at = null,
           token = null, locked_until = null, hold_until = null where terminal_at is null`,
      )
      .bind(Date.now()),
    db.prepare("delete from fan_out"),
    db.prepare("delete from replay_part"),
    db.prepare("delete from operational_event"),
  ]);
}

/** A promise and its switch. */
export function gate<T = void>() {
  let open!: (value: T) => void;
  const opened = new Promise<T>((resolve) => (open = resolve));
  return { open, opened };
}
