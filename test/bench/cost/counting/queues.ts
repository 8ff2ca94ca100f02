import type { Origin } from "./counts.ts";
import { count } from "./tally.ts";

const BILLED_BYTES = 64_000;
/** What Cloudflare adds to each message. */
const METADATA_BYTES = 100;

/** Operations that writing, reading or deleting a message is billed as. */
export function operations(body: unknown): number {
  const bytes = new TextEncoder().encode(JSON.stringify(body)).length + METADATA_BYTES;
  return Math.ceil(bytes / BILLED_BYTES);
}

export function countingQueue(queue: Queue, origin: Origin): Queue {
  return {
    send(body: unknown, options?: QueueSendOptions) {
      count(origin, "queueWrites", operations(body));
      return queue.send(body, options);
    },
    sendBatch(messages: MessageSendRequest[], options?: QueueSendBatchOptions) {
      for (const { body } of messages) count(origin, "queueWrites", operations(body));
      return queue.sendBatch(messages, options);
    },
    metrics: () => queue.metrics(),
  } as Queue;
}

/** A batch whose messages are counted as read now, and as deleted when they are acknowledged, also by nobody saying no. */
export function countingBatch(batch: MessageBatch): { batch: MessageBatch; settle(): void } {
  const open = new Map(batch.messages.map((message) => [message.id, operations(message.body)]));
  for (const n of open.values()) count("queue", "queueReads", n);
  const keep = (id: string) => void open.delete(id);
  const counted = {
    queue: batch.queue,
    metadata: batch.metadata,
    messages: batch.messages.map((message) => ({
      id: message.id,
      timestamp: message.timestamp,
      body: message.body,
      attempts: message.attempts,
      ack: () => message.ack(),
      retry(options?: QueueRetryOptions) {
        keep(message.id);
        message.retry(options);
      },
    })),
    ackAll: () => batch.ackAll(),
    retryAll(options?: QueueRetryOptions) {
      open.clear();
      batch.retryAll(options);
    },
  } as MessageBatch;
  return {
    batch: counted,
    settle() {
      for (const n of open.values()) count("queue", "queueDeletes", n);
    },
  };
}
