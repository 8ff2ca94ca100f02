import { retentionPrefix } from "./retention.ts";
import { formatTime } from "./timestamps.ts";

/** Where a request's payloads lie: by retention class, for the bucket's rules, then tenant and day, for people. */
export function payloadObjectKey(classDays: number, tenantId: string, name: string, now: number): string {
  return `${retentionPrefix(classDays)}${tenantId}/${formatTime(now).slice(0, 10)}/${name}`;
}

export function joinPayloadRef(objectKey: string, offset: number): string {
  return `${objectKey}#${offset}`;
}

/** The object of a payload reference `<object key>#<offset>`, and the offset in it. */
export function splitPayloadRef(ref: string): [objectKey: string, offset: number] {
  const hash = ref.lastIndexOf("#");
  return [ref.slice(0, hash), Number(ref.slice(hash + 1))];
}
