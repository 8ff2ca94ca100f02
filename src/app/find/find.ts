import { z } from "zod";
import { encodeCursor, parseCursor } from "../../core/cursor.ts";
import {
  FIND_KINDS,
  MAX_SOUGHT_LENGTH,
  parseSought,
  recognize,
  type FindKind,
  type Sought,
} from "../../core/find-kinds.ts";
import { attemptId, deliveryId, isEventId, type DeliveryRef } from "../../core/ids.ts";
import type { Delivery, Event } from "../../core/model.ts";
import { MAX_TIME_MS } from "../../core/timestamps.ts";
import { invalidField } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { invalidCursor } from "../list-input.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import { look, type FindLedger, type Resume, type Searched, type Target } from "./look.ts";

export interface FindDeps extends FindLedger {
  loadEvents(tenantId: string, ids: string[], now: number): Promise<Event[]>;
  loadDeliveries(
    tenantId: string,
    parts: (Pick<DeliveryRef, "eventId"> & Partial<DeliveryRef>)[],
    limit: number,
    now: number,
  ): Promise<Delivery[][]>;
}

/** What a text led to: an event, those of its deliveries that it names or the first of all, and the attempt, if it names one. */
export interface Match {
  kind: FindKind;
  event: Event;
  deliveries: Delivery[];
  hasMoreDeliveries: boolean;
  attemptId: string | null;
}

export interface Findings {
  matches: Match[];
  /** Where was looked, and how far: only what is whole says that there is nothing else. */
  searched: Searched[];
  nextCursor: string | null;
}

const DAY_MS = 86_400_000;
const MAX_DELIVERIES = 20;

export const FindInput = z.strictObject({
  q: z
    .string()
    .regex(/^[^\p{Cc}\p{Cs}]+$/u, "must be a text without control characters")
    .max(MAX_SOUGHT_LENGTH),
  kind: z.enum(FIND_KINDS).optional(),
  created_after: Time.optional(),
  created_before: Time.optional(),
  cursor: z.string().optional(),
});

/** Finds what an id or key of any kind belongs to, newest first of each kind, in a bounded number of reads. */
export async function find(deps: FindDeps, principal: Principal, query: unknown): Promise<Findings> {
  requireReader(principal);
  const { tenantId } = principal;
  const input = parseInput(FindInput, query);
  const sought = soughtOf(input.q, input.kind);
  const now = deps.now();
  const resume = resumeOf(input, now);
  const { targets, searched, rest } = await look(deps, tenantId, sought, resume);
  const events = await deps.loadEvents(tenantId, [...new Set(targets.map(({ eventId }) => eventId))], now);
  const eventOf = new Map(events.map((event) => [event.id, event]));
  const living = targets.filter(({ eventId }) => eventOf.has(eventId));
  const deliveries = await deps.loadDeliveries(tenantId, living, MAX_DELIVERIES + 1, now);
  const matches = living.flatMap((target, i) => toMatch(target, eventOf.get(target.eventId)!, deliveries[i]!));
  return { matches, searched, nextCursor: rest && encodeResume(rest) };
}

function soughtOf(text: string, kind: FindKind | undefined): Sought[] {
  if (kind === undefined) return recognize(text);
  const sought = parseSought(text, kind);
  if (!sought.ok) throw invalidField("q", `is not in the form of ${kind}`);
  return [sought.value];
}

/** Nothing where a delivery is named that is not there: an event alone is no answer to that. */
function toMatch({ kind, endpointId, attemptNumber }: Target, event: Event, found: Delivery[]): Match[] {
  const [first] = found;
  if (endpointId !== undefined && !first) return [];
  const isAttempt = attemptNumber !== null && first !== undefined;
  if (isAttempt && attemptNumber > first.attemptCount) return [];
  return [
    {
      kind,
      event,
      deliveries: found.slice(0, MAX_DELIVERIES),
      hasMoreDeliveries: found.length > MAX_DELIVERIES,
      attemptId: isAttempt ? attemptId(deliveryId(first), attemptNumber) : null,
    },
  ];
}

/** Where to look: what a cursor left, or all of the time that is asked for, which is the last day. */
function resumeOf({ cursor, created_after, created_before }: z.infer<typeof FindInput>, now: number): Resume {
  if (cursor === undefined) {
    const until = created_before ?? now + 1;
    return {
      from: afterOf(created_after) ?? Math.max(0, until - DAY_MS),
      until,
      isFirst: true,
      keyed: null,
      failed: null,
      succeeded: null,
      ordered: null,
    };
  }
  const parsed = parseCursor(cursor, ["number", "number", "string", "string", "string", "string"]);
  if (!parsed.ok) throw invalidCursor();
  const [from, until, keyed, failed, succeeded, ordered] = parsed.value;
  if (![from, until].every(isTime) || ![keyed, ordered].every(isEventIdOrNone)) throw invalidCursor();
  if ((afterOf(created_after) ?? from) !== from || (created_before ?? until) !== until) throw invalidCursor();
  return {
    from,
    until,
    isFirst: false,
    keyed: keyed === "" ? null : keyed,
    failed: attemptKeyOf(failed),
    succeeded: attemptKeyOf(succeeded),
    ordered: ordered === "" ? null : ordered,
  };
}

/** The first moment behind a time; behind the last that can be told there is none. */
function afterOf(time: number | undefined): number | undefined {
  return time === undefined ? undefined : Math.min(time + 1, MAX_TIME_MS);
}

const isTime = (ms: number) => ms >= 0 && ms <= MAX_TIME_MS;
const isEventIdOrNone = (text: string) => text === "" || isEventId(text);

function attemptKeyOf(text: string): Resume["failed"] {
  if (text === "") return null;
  const sought = parseSought(text, "delivery_id");
  if (!sought.ok || sought.value.kind !== "delivery_id" || sought.value.attemptNumber === null) throw invalidCursor();
  const { eventId, endpointId, replayNo } = sought.value.ref;
  return [eventId, endpointId, replayNo, sought.value.attemptNumber];
}

function encodeResume({ from, until, keyed, failed, succeeded, ordered }: Resume): string {
  const text = (key: Resume["failed"]) =>
    key === null ? "" : attemptId(deliveryId({ eventId: key[0], endpointId: key[1], replayNo: key[2] }), key[3]);
  return encodeCursor([from, until, keyed ?? "", text(failed), text(succeeded), ordered ?? ""]);
}
