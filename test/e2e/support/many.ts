import { eventually, expectStatus, listAll, type TestTenant } from "./client.ts";
import type { Received } from "./receiver.ts";

const BATCH = 500;
const AT_ONCE = 20;

/** Publishes events in batches, one after the other, and gives back their ids; an event that is refused fails the test. */
export async function publishMany({ admin }: TestTenant, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const events = Array.from({ length: Math.min(BATCH, count - ids.length) }, (_, i) => ({
      type: "order.created",
      source: "orders",
      payload: { n: ids.length + i },
    }));
    const { results } = await expectStatus(202, admin.post("/v1/events/batch", { events }));
    for (const result of results) {
      if (result.status !== 202) throw new Error(`An event of a batch was refused: ${JSON.stringify(result)}`);
      ids.push(result.id);
    }
  }
  return ids;
}

/** Resolves once no delivery of the tenant is open any more. */
export async function nothingOpen(tenant: TestTenant, timeoutMs?: number): Promise<void> {
  await eventually(async () => !(await hasOpen(tenant)), timeoutMs);
}

export async function hasOpen(tenant: TestTenant): Promise<boolean> {
  const open = await Promise.all(["pending", "processing"].map((status) => hasAny(tenant, status)));
  return open.includes(true);
}

/** A page looks at so many deliveries: of more an empty one does not say that there is none. */
async function hasAny({ admin }: TestTenant, status: string): Promise<boolean> {
  const path = `/v1/deliveries?limit=1&status=${status}`;
  let page = await expectStatus(200, admin.get(path));
  while (page.data.length === 0 && page.next_cursor !== null) {
    page = await expectStatus(200, admin.get(`${path}&cursor=${page.next_cursor}`));
  }
  return page.data.length > 0;
}

/** All deliveries of the tenant once none is open any more; fails when there are not `count`. */
export async function allDeliveries(tenant: TestTenant, count: number, timeoutMs?: number): Promise<any[]> {
  await nothingOpen(tenant, timeoutMs);
  const deliveries = await listAll(tenant, "/v1/deliveries");
  if (deliveries.length !== count) throw new Error(`There are ${deliveries.length} deliveries instead of ${count}`);
  return deliveries;
}

/** The deliveries with these ids, attempts included, read some at a time. */
export async function readDeliveries({ admin }: TestTenant, ids: string[]): Promise<any[]> {
  const deliveries: any[] = [];
  for (let i = 0; i < ids.length; i += AT_ONCE) {
    const part = ids.slice(i, i + AT_ONCE).map((id) => expectStatus(200, admin.get(`/v1/deliveries/${id}`)));
    deliveries.push(...(await Promise.all(part)));
  }
  return deliveries;
}

/** How often each message was received, by its `webhook-id`. */
export function countByWebhookId(received: Received[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { headers } of received) {
    const id = headers["webhook-id"] as string;
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
