import { env } from "cloudflare:workers";
import { shardsOf } from "../../../src/compose.ts";
import { createTestTenant } from "../support/api.ts";
import { createTestContext, publish, shardDeps } from "../support/worker.ts";

/** A tenant with one endpoint a filter, each subscribed to everything under it; null is none. */
export async function createFiltered(filters: (string | null)[]) {
  const tenant = await createTestTenant();
  const { api } = tenant;
  await api.post("/v1/sources", { name: "orders" });
  const subscriptions: { id: string; endpointId: string }[] = [];
  for (const filter of filters) {
    const endpoint = await api.post("/v1/endpoints", { url: "https://consumer.example/hook" });
    const fields = { endpoint_id: endpoint.body.id, event_type_pattern: "*", filter };
    const made = await api.post("/v1/subscriptions", fields);
    if (made.status !== 201) throw new Error(JSON.stringify(made.body));
    subscriptions.push({ id: made.body.id, endpointId: endpoint.body.id });
  }
  const context = createTestContext();
  const shard = shardDeps(tenant, context);
  return {
    tenant,
    api,
    context,
    shard,
    db: shardsOf(env as Env).get(tenant.shard)!,
    subscriptions,
    ids: subscriptions.map(({ id }) => id),
    publish: (payload: unknown, fields: Record<string, unknown> = {}, deps = shard) =>
      publish(
        { ...deps, announceLane: () => {} },
        tenant,
        { type: "order.created", source: "orders", ...fields },
        typeof payload === "string" ? payload : JSON.stringify(payload),
      ),
    readEvent: async (id: string) => (await api.get(`/v1/events/${id}`)).body,
    readSubscription: async (n: number) => (await api.get(`/v1/subscriptions/${subscriptions[n]!.id}`)).body,
  };
}
