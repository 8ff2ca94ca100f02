import { runtime } from "./runtime.ts";

/** How old the oldest message is that the queues have not delivered; 0 where they do not say. */
export async function queueAgeMs(env: Env): Promise<number> {
  const metrics = await Promise.all([env.FIRST_ATTEMPTS, env.RETRIES].map(metricsOf));
  const oldest = metrics.flatMap((known) => known?.oldestMessageTimestamp?.getTime() ?? []);
  return oldest.length > 0 ? Math.max(0, runtime.now() - Math.min(...oldest)) : 0;
}

async function metricsOf(queue: Queue): Promise<QueueMetrics | null> {
  try {
    return await queue.metrics();
  } catch {
    return null;
  }
}
