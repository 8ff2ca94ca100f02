import type { RingMessage } from "./messages.ts";

/** A message is at most 128 KB; a delivery takes about 55 bytes of it, and a consumer should be done with one soon. */
const DELIVERIES_PER_MESSAGE = 50;
/** A send is at most 100 messages and 256 KB. */
const MESSAGES_PER_SEND = 50;
const SEND_TIMEOUT_MS = 5_000;

interface Call {
  tenantId: string;
  deliveryId: string;
  attemptNumber: number;
}

/** Rings for deliveries after a delay (whole seconds, rounded up). Throws when the queue refuses or does not answer. */
export async function sendRings(queue: Queue, shard: string, calls: Call[], delayMs: number): Promise<void> {
  const delaySeconds = Math.ceil(delayMs / 1000);
  const messages = toMessages(shard, calls).map((body) => ({ body, ...(delaySeconds > 0 && { delaySeconds }) }));
  await sendAll(queue, messages);
}

/** Rings for what events owe beyond their commits, a message an event: the work of one is long enough. */
export async function sendFanOuts(
  queue: Queue,
  shard: string,
  fanOuts: { tenantId: string; eventId: string }[],
): Promise<void> {
  const messages = fanOuts.map(({ tenantId, eventId }) => ({
    body: { shard, tenant: tenantId, deliveries: [], fan_outs: [eventId] } satisfies RingMessage,
  }));
  await sendAll(queue, messages);
}

export async function sendMessage(queue: Queue, body: unknown, delaySeconds: number): Promise<void> {
  await withTimeout(queue.send(body, { delaySeconds }));
}

async function sendAll(queue: Queue, messages: MessageSendRequest[]): Promise<void> {
  for (let i = 0; i < messages.length; i += MESSAGES_PER_SEND) {
    await withTimeout(queue.sendBatch(messages.slice(i, i + MESSAGES_PER_SEND)));
  }
}

function toMessages(shard: string, calls: Call[]): RingMessage[] {
  const messages: RingMessage[] = [];
  for (const [tenant, ofTenant] of Map.groupBy(calls, ({ tenantId }) => tenantId)) {
    for (let i = 0; i < ofTenant.length; i += DELIVERIES_PER_MESSAGE) {
      const part = ofTenant.slice(i, i + DELIVERIES_PER_MESSAGE);
      messages.push({ shard, tenant, deliveries: part.map((call) => [call.deliveryId, call.attemptNumber]) });
    }
  }
  return messages;
}

async function withTimeout(work: Promise<unknown>): Promise<void> {
  let timer: number | null = null;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("The queue did not answer in time.")), SEND_TIMEOUT_MS);
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
