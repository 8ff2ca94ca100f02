import { eventually, expectStatus, type TestTenant } from "./client.ts";
import type { Received } from "./receiver.ts";

const BATCH = 500;
const PAGE = 250;

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

/** All deliveries of the tenant once none is open any more; fails when there are not `count`. */
export async function allDeliveries({ admin }: TestTenant, count: number, timeoutMs?: number): Promise<any[]> {
  await eventually(async () => {
    const open = await Promise.all(
      ["pending", "processing"].map((status) =>
        expectStatus(200, admin.get(`/v1/deliveries?limit=1&status=${status}`)),
      ),
    );
    return open.every(({ data }) => data.length === 0);
  }, timeoutMs);
  const deliveries: any[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const page: any = await expectStatus(
      200,
      admin.get(`/v1/deliveries?limit=${PAGE}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`),
    );
    deliveries.push(...page.data);
    cursor = page.next_cursor;
  }
  if (deliveries.length !== count) throw new Error(`There are ${deliveries.length} deliveries instead of ${count}`);
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
