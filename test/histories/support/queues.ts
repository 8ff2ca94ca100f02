import { consumeReports, consumeRings } from "../../../src/queue/consumer.ts";
import { composeDeliver } from "../../../src/compose.ts";
import { contextFor, type Send } from "./context.ts";
import type { Isolate } from "./isolate.ts";
import type { World } from "./world.ts";

type Handler = (batch: MessageBatch, isolate: Isolate) => Promise<void>;

interface Waiting {
  id: string;
  body: string;
  attempts: number;
  dueAt: number;
}

const MAX_BATCH = 20;
const MAX_RING_ATTEMPTS = 11;

/**
 * Queues whose messages may be doubled and come in any order, and doorbells late or never. What a consumer did not
 * acknowledge before it died comes again.
 */
export function createQueues(world: World, env: () => Env, send: Send, worker: () => Isolate) {
  const contextOf = (isolate: Isolate) => contextFor(world, isolate, send);
  const rings: Handler = (batch, isolate) =>
    consumeRings(batch, (shard) => composeDeliver(env(), contextOf(isolate), shard, "queue"));
  const reports: Handler = (batch, isolate) =>
    consumeReports(batch, (shard) => composeDeliver(env(), contextOf(isolate), shard, "queue"));
  return {
    FIRST_ATTEMPTS: createQueue(world, "first-attempts", worker, rings, true),
    RETRIES: createQueue(world, "retries", worker, rings, true),
    OUTCOMES: createQueue(world, "outcomes", worker, reports, false),
  };
}

function createQueue(world: World, name: string, worker: () => Isolate, handler: Handler, mayBeLost: boolean) {
  const waiting = new Set<Waiting>();
  let ids = 0;

  function add(body: unknown, delaySeconds: number): void {
    const luck = world.weather.ofMessage(world.chance);
    if (luck === "lost" && mayBeLost) return world.log(`lost: a message of ${name}`);
    const lateMs = luck === "late" ? world.chance.int(500, 40_000) : world.chance.int(0, 3);
    const copies = luck === "doubled" ? 2 : 1;
    for (let n = 0; n < copies; n++) {
      const message = { id: `${name}-${++ids}`, body: JSON.stringify(body), attempts: 0, dueAt: 0 };
      wait(message, delaySeconds * 1_000 + lateMs + n * world.chance.int(0, 3_000));
    }
  }

  function wait(message: Waiting, delayMs: number): void {
    message.dueAt = world.now + delayMs;
    waiting.add(message);
    world.at(message.dueAt, null, `${name} delivers`, deliver);
  }

  /** Whatever is due, in some order. */
  function deliver(): void {
    const due = [...waiting].filter(({ dueAt }) => dueAt <= world.now).slice(0, MAX_BATCH);
    if (due.length > 1 && world.chance.next() < 0.3) due.reverse();
    if (due.length === 0) return;
    for (const message of due) {
      waiting.delete(message);
      message.attempts++;
    }
    const verdicts = new Map<Waiting, { retryMs: number | null }>();
    const messages = due.map((message) => ({
      id: message.id,
      timestamp: new Date(world.now),
      attempts: message.attempts,
      body: JSON.parse(message.body) as unknown,
      ack: () => void verdicts.set(message, { retryMs: null }),
      retry: (options?: { delaySeconds?: number }) =>
        void verdicts.set(message, { retryMs: (options?.delaySeconds ?? 0) * 1_000 }),
    }));
    const batch = { queue: `hooklane-${name}`, messages } as unknown as MessageBatch;
    const isolate = worker();
    world.invoke(
      isolate,
      () => handler(batch, isolate),
      (outcome) => {
        for (const message of due) {
          // The verdicts of a batch count when it is done.
          const verdict = "error" in outcome ? { retryMs: world.chance.int(1_000, 20_000) } : verdicts.get(message);
          const retryMs = verdict?.retryMs ?? null;
          if (retryMs !== null && (!mayBeLost || message.attempts < MAX_RING_ATTEMPTS)) wait(message, retryMs);
        }
      },
    );
  }

  return {
    send: (body: unknown, options?: { delaySeconds?: number }) =>
      world.call("queue", `send to ${name}`, () => add(body, options?.delaySeconds ?? 0)),
    sendBatch: (messages: { body: unknown; delaySeconds?: number }[]) =>
      world.call("queue", `ring ${name} ×${messages.length}`, () => {
        for (const { body, delaySeconds } of messages) add(body, delaySeconds ?? 0);
      }),
    metrics: () => world.call("queue", `metrics of ${name}`, () => ({ oldestMessageTimestamp: null })),
  } as unknown as Queue;
}
