import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import { expandFanOut } from "../../../src/app/publish/expand-fan-out.ts";
import { authorizePublisher } from "../../../src/app/publish/publish-config.ts";
import { publishEvents } from "../../../src/app/publish/publish-events.ts";
import { shardsOf } from "../../../src/compose.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createFanOutLedger } from "../../../src/storage/ledger/fan-out.ts";
import { createWatchLedger } from "../../../src/storage/ledger/watch.ts";
import { countingEnv, createCost } from "../support/counting.ts";
import { createCrowd } from "../support/crowd.ts";
import { publish } from "../support/worker.ts";

const MAX_PARAMETER_BYTES = 1_000_000;

/** The environment with the size of the largest parameter that any of its databases was given, and of the longest statement. */
function measuringEnv() {
  const largest = { parameter: 0, statement: 0 };
  const sizeOf = (value: unknown) => (typeof value === "string" ? new TextEncoder().encode(value).length : 0);
  const measuring = (db: D1Database) =>
    new Proxy(db, {
      get(target, property) {
        if (property === "prepare") {
          return (sql: string) => {
            largest.statement = Math.max(largest.statement, sizeOf(sql));
            const statement = target.prepare(sql);
            const bind = statement.bind.bind(statement);
            return Object.assign(statement, {
              bind(...values: unknown[]) {
                largest.parameter = Math.max(largest.parameter, ...values.map(sizeOf));
                return bind(...values);
              },
            });
          };
        }
        const value = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  const names = Object.keys(env).filter((name) => /^DB(_\d+)?$/.test(name));
  const databases = names.map((name) => [name, measuring((env as any)[name])]);
  return { bindings: { ...(env as Env), ...Object.fromEntries(databases) } as Env, largest };
}

test(
  "no parameter is a megabyte: one event to ten thousand, the largest batch of fan-outs, and events with all fields full",
  { timeout: 60_000 },
  async () => {
    const { bindings, largest } = measuringEnv();
    const crowd = await createCrowd(10_000, bindings);
    const { shard, tenant } = crowd;
    const publisher = await authorizePublisher(shard, { tenantId: tenant.id });
    const item = <F extends object>(fields: F) => ({
      fields: { type: "t".repeat(128), source: "orders", ...fields },
      payload: new TextEncoder().encode("1"),
      payloadIsJson: true,
      contentType: "application/json",
      contentEncoding: null,
    });
    const one = await publish(shard, tenant, { type: "order.created", source: "orders" });
    await expandFanOut(crowd.expand, { tenantId: tenant.id, eventId: one.id });
    expect((await crowd.deliveriesOf(one.id)).size).toBe(10_000);
    expect(largest.parameter).toBeGreaterThan(100_000);

    // A batch whose deliveries all commit with their events: twenty endpoints are left.
    await crowd.db
      .prepare("update subscription set disabled_at = 1 where tenant_id = ? and endpoint_id >= ?")
      .bind(tenant.id, crowd.endpointIds[20])
      .run();
    await crowd.db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenant.id).run();
    const events = Array.from({ length: 500 }, (_, n) => {
      const key = String(n).padStart(256, "k");
      return item({ idempotency_key: key, ordering_key: key, cause_event_id: one.id });
    });
    for (const duplicate of [false, true]) {
      const results = await publishEvents(shard, publisher, events, "x".repeat(32));
      for (const result of results) {
        if (result instanceof AppError) throw result;
        expect(result).toMatchObject({ duplicate, deliveryCount: 20 });
      }
    }

    // The same with filters, of which each fails a hundred times an event, and with what the others cost.
    await crowd.db
      .prepare(
        `update subscription set filter = iif(endpoint_id < ?2, 'payload == 1 || payload == "filter"', 'payload > "filter"'),
           disabled_at = iif(endpoint_id < ?3, null, 1) where tenant_id = ?1`,
      )
      .bind(tenant.id, crowd.endpointIds[20], crowd.endpointIds[130])
      .run();
    await crowd.db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenant.id).run();
    const again = events.map(({ fields, ...rest }) => ({
      ...rest,
      fields: { ...fields, idempotency_key: `f${fields.ordering_key.slice(1)}` },
    }));
    for (const result of await publishEvents(shard, publisher, again, "x".repeat(32))) {
      if (result instanceof AppError) throw result;
      expect(result).toMatchObject({ deliveryCount: 20, skippedCount: 110 });
      expect(result.skipped).toHaveLength(100);
    }
    console.log(`largest parameter: ${largest.parameter} bytes; longest statement: ${largest.statement} bytes`);
    expect(largest.parameter).toBeLessThanOrEqual(MAX_PARAMETER_BYTES);
    expect(largest.statement).toBeLessThan(10_000);
  },
);

test("the watchdog reads no more with hundreds of parts open than it lists, and a change of an endpoint none of another tenant's", async () => {
  const [crowd, other] = [await createCrowd(1_100), await createCrowd(1)];
  const { id } = await publish(crowd.shard, crowd.tenant, { type: "order.created", source: "orders" });
  const cost = createCost();
  const counted = shardsOf(countingEnv(env as Env, cost));
  const readsOf = async <T>(work: () => Promise<T>) => {
    const before = cost.rowsRead;
    await work();
    return cost.rowsRead - before;
  };
  const ledger = createFanOutLedger(counted.get(crowd.tenant.shard)!);
  const watch = createWatchLedger(counted.get(crowd.tenant.shard)!);
  const reads = async () => ({
    list: await readsOf(() => ledger.listOpenParts("evt_z", 5)),
    find: await readsOf(() => ledger.findOpenPart({ tenantId: crowd.tenant.id, eventId: id })),
    next: await readsOf(() => watch.findNextDue(Date.now())),
  });
  const few = await reads();
  await crowd.db
    .prepare(
      `insert into fan_out (tenant_id, event_id, part, deliveries)
       with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
       select ?1, ?2, n.i, '[]' from n`,
    )
    .bind(crowd.tenant.id, id)
    .run();
  const many = await reads();
  expect(many.list - few.list).toBeLessThanOrEqual(5);
  expect(Math.abs(many.find - few.find)).toBeLessThanOrEqual(1);
  expect(Math.abs(many.next - few.next)).toBeLessThanOrEqual(1);

  const act = createActLedger(counted.get(other.tenant.shard)!);
  const disable = () => act.disableEndpoint(other.tenant.id, other.endpointIds[0]!, "operator", Date.now());
  // Each open part of the shard is passed by, and none of another tenant's is looked into.
  expect(await readsOf(disable)).toBeLessThan(600);
});
