import { eventIdTimeMs, firstEventIdAt, isEventId } from "./ids.ts";

/** Where an export of deliveries has come to: the key of the last row, in order of creation. */
export type DeliveryPlace = [createdAt: number, eventId: string, endpointId: string, replayNo: number];
/** The same of attempts, which go by their events. */
export type AttemptPlace = [eventId: string, endpointId: string, replayNo: number, attemptNumber: number];

/** Keys as SQL compares rows of values: part by part. */
export function comparePlaces<Place extends readonly (string | number)[]>(a: Place, b: Place): number {
  const i = a.findIndex((part, at) => part !== b[at]);
  return i === -1 ? 0 : a[i]! < b[i]! ? -1 : 1;
}

/**
 * Behind which first delivery, by event and endpoint, those begin that come after this place. A first delivery is as old as its event,
 * whose id begins with its time, so that its id alone puts it in order; a replay is younger than its event, or by another clock older.
 */
export function firstDeliveriesAfter([createdAt, eventId, endpointId]: DeliveryPlace): [
  eventId: string,
  endpointId: string,
] {
  const eventAt = isEventId(eventId) ? eventIdTimeMs(eventId) : -1;
  if (eventAt === createdAt) return [eventId, endpointId];
  return [firstEventIdAt(eventAt > createdAt ? createdAt + 1 : createdAt), ""];
}
