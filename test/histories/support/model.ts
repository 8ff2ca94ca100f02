import type { Isolate } from "./isolate.ts";
import type { Sqlite } from "./sqlite.ts";

/** What a producer wants on record, under one idempotency key if it has one, however often it asks. */
export interface Wanted {
  name: string;
  orderingKey: string | null;
  idempotencyKey: string | null;
  payload: string;
  /** Moments of the history, by a counter. */
  firstSentAt: number;
  acknowledgedAt: number | null;
  eventId: string | null;
  /** The request that made the event; null while that is not known. */
  madeBy: number | null;
}

export type Behaviour = "ok" | "slow" | "error" | "busy" | "reject" | "gone" | "hang" | "reset" | "flaky";

/** One request as the receiver saw it. */
export interface Received {
  deliveryId: string;
  eventId: string;
  endpointId: string;
  replayNo: number;
  attempt: number;
  from: Isolate;
  /** When its process let it go, and when it arrived. */
  leftAt: number;
  startedAt: number;
  endedAt: number | null;
  /** The settings it was claimed under. */
  revision: number;
  mode: string | null;
  cap: number | null;
  rate: number | null;
  orderingKey: string | null;
  answered: "success" | "failure" | null;
  /** When the process that made it heard of it. */
  toldAt: number | null;
}

export interface ModelEndpoint {
  id: string;
  behaviour: Behaviour;
  /** As they were told, the newest last. */
  secrets: Uint8Array[];
  /** A rotation was not answered: it may have been made. */
  unknownSecret: boolean;
  /** Rotations that have not been answered yet. */
  rotating: number;
}

/** What should be so, kept beside the relay and told only what one can see from outside. */
export class Model {
  readonly endpoints: ModelEndpoint[] = [];
  readonly wanted: Wanted[] = [];
  readonly received: Received[] = [];
  readonly violations: string[] = [];
  /** Deliveries that somebody asked to cancel. */
  readonly cancelled = new Set<string>();
  /** Events whose payload somebody asked to erase, and when the first was answered. */
  readonly erased = new Map<string, number | null>();
  /** Counts what happens, for before and after. */
  moment = 0;
  readonly #db: Sqlite;
  readonly #byAttempt = new Set<string>();
  readonly #webhookIds = new Map<string, string>();

  constructor(db: Sqlite) {
    this.#db = db;
  }

  violate(what: string): void {
    if (!this.violations.includes(what)) this.violations.push(what);
  }

  endpoint(id: string): ModelEndpoint {
    return this.endpoints.find((endpoint) => endpoint.id === id)!;
  }

  /** The relay says that this is on record: then it is, with all it owes. */
  acknowledge(wanted: Wanted, eventId: string, madeBy: number | null): void {
    wanted.madeBy ??= madeBy;
    if (wanted.eventId !== null && wanted.eventId !== eventId) this.violate(`two events for one key: ${wanted.name}`);
    const rival = this.wanted.find(
      (other) =>
        other !== wanted &&
        other.eventId !== null &&
        other.idempotencyKey !== null &&
        other.idempotencyKey === wanted.idempotencyKey,
    );
    if (rival) this.violate(`one key for two events: ${wanted.name}, ${rival.name}`);
    wanted.eventId = eventId;
    wanted.acknowledgedAt ??= ++this.moment;
    const owed = this.#db.rows("select endpoint_id from delivery where event_id = ? and replay_no = 0", eventId);
    if (owed.length !== this.endpoints.length) this.violate(`acknowledged and not on record: ${wanted.name}`);
  }

  /** A request has begun: seen once, under the name of its event and endpoint. */
  see(request: Received, webhookId: string): void {
    const attempt = `${request.deliveryId}:${request.attempt}`;
    if (this.#byAttempt.has(attempt)) this.violate(`one attempt, two requests: ${attempt}`);
    this.#byAttempt.add(attempt);
    const identity = `${request.eventId} ${request.endpointId}`;
    if ((this.#webhookIds.get(identity) ?? webhookId) !== webhookId) this.violate(`webhook-id changed: ${attempt}`);
    if (!this.#webhookIds.has(identity)) {
      if ([...this.#webhookIds.values()].includes(webhookId)) this.violate(`webhook-id twice: ${attempt}`);
      this.#webhookIds.set(identity, webhookId);
    }
    this.received.push(request);
  }

  /** Events that were acknowledged before this one was sent, or stand before it in its batch. */
  before(eventId: string, body: string): Set<string> {
    // Also of one whose producer was not answered.
    const wanted = this.wanted.find((one) => one.eventId === eventId) ?? this.ofBody(body);
    const earlier = new Set<string>();
    if (!wanted) return earlier;
    for (const other of this.wanted) {
      if (other.acknowledgedAt === null) continue;
      const isBefore = other.acknowledgedAt < wanted.firstSentAt;
      // Ids of one request sort as its array does.
      const isInBatch = other.madeBy !== null && other.madeBy === wanted.madeBy && other.eventId! < eventId;
      if (isBefore || isInBatch) earlier.add(other.eventId!);
    }
    return earlier;
  }

  /** Whose payload this is. */
  ofBody(body: string): Wanted | undefined {
    return this.wanted.find(({ payload }) => body.includes(payload));
  }

  /** Also those of processes that died: the receiver is at them all the same, and their leases are longer. */
  inFlight(endpointId: string): Received[] {
    return this.received.filter((one) => one.endpointId === endpointId && one.endedAt === null);
  }
}
