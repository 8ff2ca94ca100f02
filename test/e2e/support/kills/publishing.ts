import type { TestTenant } from "../client.ts";
import { sleep } from "../sleep.ts";
import { createRandom } from "../../../support/random.ts";
import { wholeNumber } from "./random.ts";
import { owedOf, typeFor, type OrderTarget } from "./receiving.ts";
import type { Published } from "./verdict.ts";

const PRODUCERS = 5;
const KEYS = 16;
const BATCH = 3;
const BATCHES = 0.1;
/** How often a producer repeats something that was acknowledged long ago. */
const REPEATS = 0.1;
const MAX_PAUSE_MS = 160;
const RETRY_MS = 100;

export interface Publishing {
  published: Published[];
  /** Publishes that were answered 5xx; these, and those whose answer never came, are repeated. */
  refused: { status: number; at: number; body: string }[];
  acknowledged?: (() => void) | undefined;
  /** Moves what is published on to other lanes: those of a killed relay wait for their leases. */
  round: number;
  /** Resolves once every event was acknowledged. */
  stop(): Promise<void>;
}

/**
 * Producers that know nothing of the relay but its URL: each publishes one request after the other, and repeats what was not
 * answered until it is, under the same idempotency keys.
 */
export function startPublishing(
  url: string,
  { adminKey }: TestTenant,
  targets: OrderTarget[],
  seed: number,
  tick: () => number,
): Publishing {
  const published: Published[] = [];
  const stopped = new AbortController();

  async function post(path: string, body: unknown): Promise<any> {
    for (;;) {
      const answer = await send(path, body).catch(() => null);
      if (answer !== null && answer.status < 300) return answer.body;
      if (answer !== null && answer.status < 500) throw new Error(`A publish got ${answer.status}: ${answer.text}`);
      if (answer !== null) publishing.refused.push({ status: answer.status, at: Date.now(), body: answer.text });
      await sleep(RETRY_MS);
    }
  }

  /** The bare `fetch`: what is done upon an answer is done at once. */
  async function send(path: string, body: unknown) {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { Authorization: `Bearer ${adminKey}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    return { status: response.status, text, body: response.ok ? JSON.parse(text) : null };
  }

  async function produce(producer: number): Promise<void> {
    const random = createRandom(seed + producer);
    const own: { event: any; id: string }[] = [];
    const createEvent = (key: string) => ({
      type: typeFor(publishing.round - (random() < 0.75 ? 0 : 1), random() < 0.5),
      source: "orders",
      payload: { key },
      idempotency_key: key,
      ordering_key: `key-${(publishing.round * 5 + wholeNumber(random, 0, 6)) % KEYS}`,
    });
    const acknowledge = (event: any, id: string, sentAt: number, behind: string | null) => {
      const owed = owedOf(targets, event.type, event.ordering_key);
      const key = event.idempotency_key;
      published.push({ key, eventId: id, sentAt, acknowledgedAt: tick(), behind, owed });
      own.push({ event, id });
    };

    for (let n = 1; !stopped.signal.aborted; n++) {
      const count = random() < BATCHES ? BATCH : 1;
      const events = Array.from({ length: count }, (_, i) => createEvent(`${producer}-${n}-${i}`));
      const sentAt = tick();
      if (count === 1) {
        const { id } = await post("/v1/events", events[0]);
        acknowledge(events[0], id, sentAt, null);
      } else {
        const { results } = await post("/v1/events/batch", { events });
        for (const [i, { id, status, error }] of results.entries()) {
          if (status >= 300) throw new Error(`An event of a batch got ${status}: ${JSON.stringify(error)}`);
          acknowledge(events[i], id, sentAt, events[i - 1]?.idempotency_key ?? null);
        }
      }
      publishing.acknowledged?.();
      if (random() < REPEATS) {
        const { event, id } = own[wholeNumber(random, 0, own.length)]!;
        const again = await post("/v1/events", event);
        if (again.id !== id || !again.duplicate) throw new Error(`${id}, repeated, became ${JSON.stringify(again)}`);
      }
      await sleep(random() * MAX_PAUSE_MS);
    }
  }

  const publishing: Publishing = {
    published,
    refused: [],
    round: 0,
    async stop() {
      stopped.abort();
      await work;
    },
  };
  const work = Promise.all(Array.from({ length: PRODUCERS }, (_, producer) => produce(producer)));
  // It is awaited once all rounds are over; until then a failure is not unheard of.
  work.catch(() => {});
  return publishing;
}
