import { deliveryWhen, eventually, expectStatus, type TestTenant } from "./client.ts";
import type { Handler, Received } from "./receiver.ts";

/** Retries come at once, and do not end soon. */
export const QUICK_RETRY = { delays_seconds: [0.2], jitter: 0, max_attempts: 50 };
/** One failure, and then nothing happens by itself. */
export const SLOW_RETRY = { delays_seconds: [3600], jitter: 0 };

export const range = (count: number, from = 0) => Array.from({ length: count }, (_, i) => from + i);

/** Publishes events numbered from `from` in one batch, whose array order is their order. Gives back their deliveries' ids. */
export async function publishNumbered(
  { admin }: TestTenant,
  count: number,
  { from = 0, keyOf }: { from?: number; keyOf?: (n: number) => string | undefined } = {},
): Promise<string[]> {
  const events = range(count, from).map((n) => ({
    type: "order.created",
    source: "orders",
    payload: { n },
    ordering_key: keyOf?.(n),
  }));
  const { results } = await expectStatus(202, admin.post("/v1/events/batch", { events }));
  return results.flatMap(({ deliveries }: any) => deliveries.map(({ id }: any) => id));
}

export const numberOf = ({ body }: Received): number => JSON.parse(body.toString()).payload.n;
export const keyOf = ({ body }: Received): string | undefined => JSON.parse(body.toString()).ordering_key;

/** Each request's status by its event's number and how often that has come, from 1. */
export function answering(statusOf: (n: number, times: number) => number): Handler {
  const times = new Map<number, number>();
  return (request, response) => {
    const n = numberOf(request);
    times.set(n, (times.get(n) ?? 0) + 1);
    response.writeHead(statusOf(n, times.get(n)!)).end();
  };
}

/** Answers 200 after a while, and knows how many requests it had at once at most. */
export function answeringAfter(ms: number): Handler & { most: number } {
  let inFlight = 0;
  const handler: Handler & { most: number } = Object.assign(
    (_: Received, response: Parameters<Handler>[1]) => {
      handler.most = Math.max(handler.most, ++inFlight);
      setTimeout(() => {
        inFlight--;
        response.end();
      }, ms);
    },
    { most: 0 },
  );
  return handler;
}

/** Keeps every request waiting until all are let go; later ones are answered at once. All with this status. */
export function holding(status = 200): { handler: Handler; letGo: () => void } {
  const waiting: (() => void)[] = [];
  let isOpen = false;
  return {
    handler(_, response) {
      const answer = () => void response.writeHead(status).end();
      if (isOpen) answer();
      else waiting.push(answer);
    },
    letGo() {
      isOpen = true;
      for (const answer of waiting.splice(0)) answer();
    },
  };
}

type Action = "pause" | "resume" | "disable" | "enable" | "lane/move";
export const act = ({ admin }: TestTenant, endpointId: string, action: Action): Promise<any> =>
  expectStatus(200, admin.post(`/v1/endpoints/${endpointId}/${action}`));

export const patchEndpoint = ({ admin }: TestTenant, endpointId: string, changes: Record<string, unknown>) =>
  expectStatus(200, admin.call("PATCH", `/v1/endpoints/${endpointId}`, changes));

export const readLane = ({ admin }: TestTenant, endpointId: string): Promise<any> =>
  expectStatus(200, admin.get(`/v1/endpoints/${endpointId}/lane`));

/** The lane once its state is this. */
export function laneWhen(tenant: TestTenant, endpointId: string, state: string): Promise<any> {
  return eventually(async () => {
    const lane = await readLane(tenant, endpointId);
    return lane.state === state && lane;
  });
}

export const actOn = ({ admin }: TestTenant, deliveryId: string, action: "retry" | "cancel" | "replay") =>
  admin.post(`/v1/deliveries/${deliveryId}/${action}`);

export const readDelivery = ({ admin }: TestTenant, id: string): Promise<any> =>
  expectStatus(200, admin.get(`/v1/deliveries/${id}`));

/** The delivery once it has failed and waits for its next attempt. Where that comes soon, it may have failed more than once. */
export const failedOnce = (tenant: TestTenant, id: string): Promise<any> =>
  deliveryWhen(tenant, id, ({ status, attempt_count }) => status === "pending" && attempt_count > 0);
