import { eventually, expectStatus, listAll, publish, type TestTenant } from "./client.ts";
import { nothingOpen, readDeliveries } from "./many.ts";
import { inTime, type InTime } from "./rate.ts";
import type { Receiver } from "./receiver.ts";
import { sleep } from "./sleep.ts";

/** One published event. `sentAt` and `acknowledgedAt` are places in the order of all that the test's process saw. */
export interface Published {
  eventId: string;
  producer: string;
  sentAt: number;
  acknowledgedAt: number;
}

/** One request as the receiver saw it, in the same order. */
export interface Visit {
  deliveryId: string;
  eventId: string;
  attempt: number;
  path: string;
  arrivedAt: number;
  /** When, by the clock. */
  time: InTime;
  answeredAt: number;
  succeeded: boolean;
  /** Requests under way when it arrived, itself included. */
  inFlight: number;
}

/** An attempt on record, by `<delivery id>:<number>`. */
export type Attempts = Map<string, { requestedAtMs: number; revision: number }>;

export interface Traffic {
  published: Published[];
  visits: Visit[];
  /** Resolves when this many more events have been acknowledged. */
  more(count: number): Promise<void>;
  /** Resolves when more requests than this have been made of an endpoint of at least this revision. */
  moreUnder(revision: number, count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Every so many events one fails at its first attempt. */
const FAILING = 13;
const ANSWER_MS = 5;
/** So much may be published and not have arrived: a slow relay gets no more traffic than it can bear. */
const MAX_AHEAD = 200;

/**
 * Several producers in parallel, `perSecond` events in all, each published after the one before was acknowledged and with
 * its producer as ordering key; and a receiver that now and then fails a first attempt.
 */
export function startTraffic(tenant: TestTenant, receiver: Receiver, perSecond: number, producers = 5): Traffic {
  const published: Published[] = [];
  const visits: Visit[] = [];
  const arrived = new Set<string>();
  let clock = 0;
  let inFlight = 0;
  const stopped = new AbortController();
  receiver.handle(async (request, response) => {
    const { headers, path, body } = request;
    const attempt = Number(headers["x-webhook-attempt"]);
    const succeeded = attempt > 1 || JSON.parse(body.toString()).payload.n % FAILING !== 0;
    const visit: Visit = {
      deliveryId: String(headers["x-webhook-delivery-id"]),
      eventId: String(headers["x-webhook-event-id"]),
      attempt,
      path,
      arrivedAt: clock++,
      time: inTime(request),
      answeredAt: Infinity,
      succeeded,
      inFlight: ++inFlight,
    };
    visits.push(visit);
    arrived.add(visit.eventId);
    await sleep(ANSWER_MS);
    inFlight--;
    visit.answeredAt = clock++;
    response.writeHead(succeeded ? 200 : 503).end();
  });

  const work = Array.from({ length: producers }, async (_, i) => {
    const producer = `producer-${i}`;
    const everyMs = (1000 * producers) / perSecond;
    const startedAt = Date.now() + (i * everyMs) / producers;
    for (let n = 1; !stopped.signal.aborted; n++) {
      await sleep(Math.max(0, startedAt + n * everyMs - Date.now()));
      while (published.length - arrived.size > MAX_AHEAD && !stopped.signal.aborted) await sleep(everyMs);
      const sentAt = clock++;
      const { id } = await publish(tenant, { payload: { n }, ordering_key: producer });
      published.push({ eventId: id, producer, sentAt, acknowledgedAt: clock++ });
    }
  });
  return {
    published,
    visits,
    async more(count) {
      const wanted = published.length + count;
      await eventually(async () => published.length >= wanted);
    },
    async moreUnder(revision, count) {
      let under = 0;
      let read = visits.length;
      await eventually(async () => {
        for (; read < visits.length && under <= count; read++) {
          const { deliveryId, attempt } = visits[read]!;
          // On record before it was made.
          const path = `/v1/deliveries/${deliveryId}/attempts`;
          const { data } = await expectStatus(200, tenant.admin.get(path));
          const made = data.find(({ attempt_number }: any) => attempt_number === attempt);
          if (made.endpoint_revision >= revision) under++;
        }
        return under > count;
      });
    },
    async stop() {
      stopped.abort();
      await Promise.all(work);
    },
  };
}

/** Once nothing is open any more: every delivery of the tenant, and every attempt of theirs. */
export async function settled(tenant: TestTenant): Promise<{ deliveries: any[]; attempts: Attempts }> {
  await nothingOpen(tenant);
  const ids = (await listAll(tenant, "/v1/deliveries")).map(({ id }) => id);
  const deliveries = await readDeliveries(tenant, ids);
  const attempts = deliveries.flatMap((delivery) =>
    delivery.attempts.map((attempt: any) => [
      attempt.id,
      { requestedAtMs: Date.parse(attempt.requested_at), revision: attempt.endpoint_revision },
    ]),
  );
  return { deliveries, attempts: new Map(attempts) };
}
