import { ok, refuse, type Result } from "./result.ts";

/**
 * Public ids: `<prefix>_` and lower-case Crockford base32 (no i, l, o, u), never a dot. Opaque to users; inside, an
 * event's id is its ULID (48-bit milliseconds, then 80 random bits), and a delivery's id is computed from the key of its
 * ledger row, so neither needs a column or an index of its own.
 */

const CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz";
const BASE32_DIGITS = "0123456789abcdefghijklmnopqrstuv";
const TIME_LENGTH = 10;
const RANDOM_LENGTH = 16;
const RANDOM_BYTES = 10;
const MAX_TIME_MS = 2 ** 48 - 1;

const RANDOM_PART = /^[0-9a-hjkmnp-tv-z]{16}$/;
// 26 characters carry 130 bits, a ULID 128: the first character is at most 7.
const EVENT_ID = /^evt_[0-7][0-9a-hjkmnp-tv-z]{25}$/;
// Six digits of replay number (2^30 - 1) and no leading zero: one delivery has exactly one spelling.
const DELIVERY_ID =
  /^dlv_([0-7][0-9a-hjkmnp-tv-z]{25})([0-9a-hjkmnp-tv-z]{16})([1-9a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z]{0,5})?$/;
const WEBHOOK_ID = /^msg_([0-7][0-9a-hjkmnp-tv-z]{25})([0-9a-hjkmnp-tv-z]{16})$/;

export type IdPrefix = "ten" | "src" | "ep" | "sub" | "sec" | "key" | "req" | "rpl";

/** What a delivery is: this event owes this endpoint a response. `replayNo` is 0 for the first, 1 to 2^30 - 1 for replays. */
export type DeliveryRef = { eventId: string; endpointId: string; replayNo: number };

/** The key of its row. */
export type TenantDeliveryRef = DeliveryRef & { tenantId: string };

/** `<prefix>_` and 16 characters. `random` is 10 bytes; any other length is a programming error and throws. */
export function createId(prefix: IdPrefix, random: Uint8Array): string {
  return `${prefix}_${encodeRandomPart(random)}`;
}

/** The 16 characters of an id behind its prefix, for what is no id but wants such a text. `random` is 10 bytes. */
export function encodeRandomPart(random: Uint8Array): string {
  return encodeRandom(readRandom(random));
}

export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && RANDOM_PART.test(text.slice(prefix.length + 1));
}

/**
 * Ids for `count` events accepted together: `evt_` and 26 characters, in ULID layout (github.com/ulid/spec), all distinct,
 * sorting in array order. `random` is 10 bytes; any other length is a programming error and throws.
 */
export function createEventIds(nowMs: number, random: Uint8Array, count: number): string[] {
  // The top bit is dropped so that counting up can never carry out of the 80 bits into the time.
  const first = BigInt.asUintN(79, readRandom(random));
  const time = encodeTime(nowMs);
  return Array.from({ length: count }, (_, n) => `evt_${time}${encodeRandom(first + BigInt(n))}`);
}

export function isEventId(text: string): boolean {
  return EVENT_ID.test(text);
}

/** Unix milliseconds at which a (well-formed) event id was made. */
export function eventIdTimeMs(eventId: string): number {
  return parseBase32(eventId.slice(4, 4 + TIME_LENGTH));
}

/** The smallest event id of a millisecond, for range queries. Times outside an id's 48 bits give the first or last one. */
export function firstEventIdAt(timeMs: number): string {
  return `evt_${encodeTime(timeMs)}${"0".repeat(RANDOM_LENGTH)}`;
}

/** `dlv_`, the event's 26 and the endpoint's 16 characters, and the replay number unless it is 0. */
export function deliveryId({ eventId, endpointId, replayNo }: DeliveryRef): string {
  return `dlv_${eventId.slice(4)}${endpointId.slice(3)}${replayNo > 0 ? toBase32(replayNo) : ""}`;
}

/** The exact inverse of `deliveryId`: accepts the one canonical spelling of each delivery and nothing else. */
export function parseDeliveryId(text: string): Result<DeliveryRef, "malformed_id"> {
  const match = DELIVERY_ID.exec(text);
  if (!match) return refuse("malformed_id");
  const [, event, endpoint, replay] = match;
  return ok({
    eventId: `evt_${event}`,
    endpointId: `ep_${endpoint}`,
    replayNo: replay === undefined ? 0 : parseBase32(replay),
  });
}

/** The consumer's dedupe key (`webhook-id`): the same for every attempt and every replay of one event to one endpoint. */
export function webhookId({ eventId, endpointId }: Pick<DeliveryRef, "eventId" | "endpointId">): string {
  return `msg_${eventId.slice(4)}${endpointId.slice(3)}`;
}

/** The exact inverse of `webhookId`. */
export function parseWebhookId(text: string): Result<Pick<DeliveryRef, "eventId" | "endpointId">, "malformed_id"> {
  const [, event, endpoint] = WEBHOOK_ID.exec(text) ?? [];
  if (event === undefined) return refuse("malformed_id");
  return ok({ eventId: `evt_${event}`, endpointId: `ep_${endpoint}` });
}

/** `attemptNumber` is 1-based. */
export function attemptId(delivery: string, attemptNumber: number): string {
  return `${delivery}:${attemptNumber}`;
}

function readRandom(random: Uint8Array): bigint {
  // Fewer bytes would pass unnoticed as guessable ids.
  if (random.length !== RANDOM_BYTES)
    throw new RangeError(`random must be ${RANDOM_BYTES} bytes, not ${random.length}`);
  return random.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function encodeRandom(value: bigint): string {
  return toBase32(value).padStart(RANDOM_LENGTH, "0");
}

function encodeTime(timeMs: number): string {
  const clampedMs = Math.min(Math.max(Math.floor(timeMs), 0), MAX_TIME_MS);
  return toBase32(clampedMs).padStart(TIME_LENGTH, "0");
}

function toBase32(value: number | bigint): string {
  return value.toString(32).replace(/[i-v]/g, (digit) => CROCKFORD.charAt(BASE32_DIGITS.indexOf(digit)));
}

/** At most 10 characters: 50 bits, within a number's exact range. */
function parseBase32(text: string): number {
  return Number.parseInt(
    text.replace(/[j-z]/g, (digit) => BASE32_DIGITS.charAt(CROCKFORD.indexOf(digit))),
    32,
  );
}
