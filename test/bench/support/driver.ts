import { join } from "node:path";
import { startChild } from "./child.ts";

export interface Load {
  /** Where to POST. */
  url: string;
  key: string;
  /** Taken in turn. `$N` in one becomes a number that no other request of this process has. */
  bodies: string[];
  /** Closed: so many at once, each followed by the next. Open: so many starts a second, whatever they take. */
  pace: { concurrency: number } | { perSecond: number };
  until: { seconds: number } | { requests: number };
}

/** An element a request, in the order of the answers, unless it says otherwise. */
export interface LoadResult {
  /** Answers by status; `error` for none. */
  statuses: Record<string, number>;
  /** Milliseconds until the answer was read: from the start of a closed loop's request, from when an open one's was due. */
  ackMs: Float64Array;
  /** An element an event accepted: its id, and when the answer that says so was read, in milliseconds since 1970. */
  eventIds: string[];
  eventAckAt: Float64Array;
  /** How late each request of an open loop was started, which is the driver's fault. */
  slipMs: Float64Array;
  startedAt: number;
  endedAt: number;
  /** Of the driver, meanwhile. */
  cpuSeconds: number;
}

export interface BenchDriver {
  run(load: Load): Promise<LoadResult>;
  stop(): Promise<void>;
}

/** A producer as a process of its own. */
export function startDriver(): BenchDriver {
  const child = startChild(join(import.meta.dirname, "driver-process.ts"));
  return {
    run: (load) => child.ask("run", load),
    stop: () => child.stop(),
  };
}

/** A body of `POST /v1/events`, with a key of its own, whose payload is `bytes` long. */
export function eventBody(type: string, bytes: number, fields: Record<string, unknown> = {}): string {
  return JSON.stringify({ type, source: "orders", idempotency_key: "bench-$N", ...fields, payload: payloadOf(bytes) });
}

/** A body of `POST /v1/events/batch`. */
export function batchBody(type: string, bytes: number, events: number, fields: Record<string, unknown> = {}): string {
  const payload = payloadOf(bytes);
  return JSON.stringify({
    events: Array.from({ length: events }, (_, n) => {
      return { type, source: "orders", idempotency_key: `bench-$N-${n}`, ...fields, payload };
    }),
  });
}

/** The payload of such a body alone. */
export function payloadText(bytes: number): string {
  return JSON.stringify(payloadOf(bytes));
}

/** JSON of so many bytes, not far from an order. */
function payloadOf(bytes: number) {
  const order = { order: 42, currency: "EUR", total: "129.90", paid: true, note: "" };
  order.note = "lorem ipsum dolor ".repeat(bytes / 18 + 1).slice(0, Math.max(0, bytes - JSON.stringify(order).length));
  return order;
}

/** When each event first arrived less when its answer was read; NaN for one that did not. Negative when it came before. */
export function lagsOf(
  { eventIds, eventAckAt }: Pick<LoadResult, "eventIds" | "eventAckAt">,
  received: { at: Float64Array; eventIds: string[] } | undefined,
): Float64Array {
  const firstAt = new Map<string, number>();
  for (const [n, id] of (received?.eventIds ?? []).entries()) if (!firstAt.has(id)) firstAt.set(id, received!.at[n]!);
  return Float64Array.from(eventIds, (id, n) => (firstAt.get(id) ?? NaN) - eventAckAt[n]!);
}
