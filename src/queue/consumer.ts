import type { DeliveryCall } from "../app/deliver/delivery-call.ts";
import { deliver, type DeliverDeps } from "../app/deliver/deliver.ts";
import { recordAttempt, type RecordAttemptDeps } from "../app/deliver/record-attempt.ts";
import type { AttemptReport } from "../app/deliver/report.ts";
import { expandFanOut, type ExpandFanOutDeps } from "../app/publish/expand-fan-out.ts";
import { ReportMessage, RingMessage } from "./messages.ts";
import { logFault } from "../log-fault.ts";

/** Seconds before a message is tried again, by how often it was: the ledger or the payload store is away. */
const RING_DELAYS_SECONDS = [1, 5, 15, 60];
/** A delivery waits for its report, so it is tried more often. */
const REPORT_DELAYS_SECONDS = [1, 5, 10, 15];

export interface ReportDeps extends RecordAttemptDeps {
  /** Says that a report is tried again after this delay, so that nobody takes its attempt for abandoned meanwhile. */
  awaitReports(delaySeconds: number): Promise<void>;
}

type Deps<T> = (shard: string) => T;

/**
 * Answers a batch of doorbells. Each message is acknowledged as soon as its deliveries are decided and the sends are on
 * their way; a receiver that hangs holds up nobody. One for a fan-out is when all of that is on record.
 */
export async function consumeRings(batch: MessageBatch, depsOf: Deps<DeliverDeps & ExpandFanOutDeps>): Promise<void> {
  const rings = batch.messages.flatMap((message) => {
    const ring = RingMessage.safeParse(message.body);
    if (ring.success) return [{ message, ring: ring.data }];
    dropMalformed(batch, message);
    return [];
  });
  const [fanOuts, deliveries] = partition(rings, ({ ring }) => ring.fan_outs !== undefined);
  const shards = [...Map.groupBy(deliveries, ({ ring }) => ring.shard)];
  await Promise.all([
    ...fanOuts.map(({ message, ring }) => expandAll(batch, message, ring, depsOf(ring.shard))),
    ...shards.map(async ([shard, ofShard]) => {
      try {
        await deliver(
          depsOf(shard),
          ofShard.flatMap(({ ring }) => toCalls(ring)),
        );
        for (const { message } of ofShard) message.ack();
      } catch (error) {
        logFault(`deliver from ${batch.queue}`, error);
        for (const { message } of ofShard) message.retry({ delaySeconds: delayOf(message, RING_DELAYS_SECONDS) });
      }
    }),
  ]);
}

async function expandAll(
  { queue }: MessageBatch,
  message: Message,
  { tenant: tenantId, fan_outs: eventIds = [] }: RingMessage,
  deps: ExpandFanOutDeps,
): Promise<void> {
  try {
    for (const eventId of eventIds) await expandFanOut(deps, { tenantId, eventId });
    message.ack();
  } catch (error) {
    logFault(`expand from ${queue}`, error);
    message.retry({ delaySeconds: delayOf(message, RING_DELAYS_SECONDS) });
  }
}

/** Puts waiting attempt reports on record. One that the ledger refuses stays in the queue. */
export async function consumeReports(batch: MessageBatch, depsOf: Deps<ReportDeps>): Promise<void> {
  await Promise.all(
    batch.messages.map(async (message) => {
      const waiting = ReportMessage.safeParse(message.body);
      if (!waiting.success) return dropMalformed(batch, message);
      const { shard, report } = waiting.data;
      const deps = depsOf(shard);
      try {
        await recordAttempt(deps, report as unknown as AttemptReport);
        message.ack();
      } catch (error) {
        logFault(`record from ${batch.queue}`, error);
        const delaySeconds = delayOf(message, REPORT_DELAYS_SECONDS);
        message.retry({ delaySeconds });
        await deps.awaitReports(delaySeconds);
      }
    }),
  );
}

/** Doorbells that were tried too often. Their rows are still due, so the watchdog rings again. */
export function dropDeadRings(batch: MessageBatch): void {
  console.error(
    JSON.stringify({ level: "error", event: "dead_rings", queue: batch.queue, count: batch.messages.length }),
  );
  batch.ackAll();
}

function dropMalformed(batch: MessageBatch, message: Message): void {
  console.error(JSON.stringify({ level: "error", event: "malformed_message", queue: batch.queue, id: message.id }));
  message.ack();
}

function partition<T>(items: T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

function toCalls({ tenant, deliveries }: RingMessage): DeliveryCall[] {
  return deliveries.map(([deliveryId, attemptNumber]) => ({ tenantId: tenant, deliveryId, attemptNumber }));
}

function delayOf({ attempts }: Message, delaysSeconds: number[]): number {
  return delaysSeconds[Math.min(attempts, delaysSeconds.length) - 1] ?? 1;
}
