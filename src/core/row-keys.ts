import { eventIdTimeMs, firstEventIdAt, isEventId } from "./ids.ts";

/** Where a delivery stands in lists and exports: by when it was made. */
export type DeliveryKey = [createdAt: number, eventId: string, endpointId: string, replayNo: number];
/** The same of an attempt, which goes by its event. */
export type AttemptKey = [eventId: string, endpointId: string, replayNo: number, attemptNumber: number];

/** As SQL compares rows of values: part by part, the smaller first. */
export function compareKeys<Key extends readonly (string | number)[]>(a: Key, b: Key): number {
  const i = a.findIndex((part, at) => part !== b[at]);
  return i === -1 ? 0 : a[i]! < b[i]! ? -1 : 1;
}

/**
 * Behind which first delivery, by event and endpoint, those begin that come after this key. A first delivery is as old as its event,
 * whose id begins with its time, so that its id alone puts it in order; a replay is younger than its event, or by another clock older.
 */
export function firstDeliveriesAfter([createdAt, eventId, endpointId]: DeliveryKey): [
  eventId: string,
  endpointId: string,
] {
  const eventAt = isEventId(eventId) ? eventIdTimeMs(eventId) : -1;
  if (eventAt === createdAt) return [eventId, endpointId];
  return [firstEventIdAt(eventAt > createdAt ? createdAt + 1 : createdAt), ""];
}
