import type { DeliveryRef } from "../../../core/ids.ts";

/** The newest delivery of a group, as `max(printf('%015d %s %05d', <time>, event_id, replay_no))` picks it. */
export function parseExample(text: string, endpointId: string): DeliveryRef {
  const [, eventId, replayNo] = text.split(" ");
  return { eventId: eventId!, endpointId, replayNo: Number(replayNo) };
}
