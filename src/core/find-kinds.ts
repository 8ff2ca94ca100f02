import { EVENT_KEY } from "./grammar.ts";
import { isEventId, parseDeliveryId, parseWebhookId, type DeliveryRef } from "./ids.ts";
import { ok, refuse, type Result } from "./result.ts";

/** What a text that somebody was handed may be. */
export const FIND_KINDS = [
  "event_id",
  "delivery_id",
  "webhook_id",
  "idempotency_key",
  "partner_request_id",
  "ordering_key",
] as const;
export type FindKind = (typeof FIND_KINDS)[number];

/** A text as one of its kinds. */
export type Sought =
  | { kind: "event_id"; eventId: string }
  /** With the number of one attempt where the text names it. */
  | { kind: "delivery_id"; ref: DeliveryRef; attemptNumber: number | null }
  | { kind: "webhook_id"; eventId: string; endpointId: string }
  | { kind: "idempotency_key"; text: string }
  | { kind: "partner_request_id"; text: string }
  | { kind: "ordering_key"; text: string };

const ATTEMPT = /^(dlv_[0-9a-z]+):([1-9]\d{0,8})$/;
/** As much of the receiver's `X-Request-Id` as is kept. */
export const MAX_SOUGHT_LENGTH = 256;

/** A text as this kind. */
export function parseSought(text: string, kind: FindKind): Result<Sought, "malformed"> {
  if (text.length > MAX_SOUGHT_LENGTH) return refuse("malformed");
  if (kind === "event_id") return isEventId(text) ? ok({ kind, eventId: text }) : refuse("malformed");
  if (kind === "delivery_id") {
    const attempt = ATTEMPT.exec(text);
    const ref = parseDeliveryId(attempt?.[1] ?? text);
    return ref.ok
      ? ok({ kind, ref: ref.value, attemptNumber: attempt ? Number(attempt[2]) : null })
      : refuse("malformed");
  }
  if (kind === "webhook_id") {
    const ref = parseWebhookId(text);
    return ref.ok ? ok({ kind, ...ref.value }) : refuse("malformed");
  }
  if (kind === "partner_request_id") return text.length > 0 ? ok({ kind, text }) : refuse("malformed");
  return EVENT_KEY.test(text) ? ok({ kind, text }) : refuse("malformed");
}

/**
 * All that a text may be. One of our own ids is that, or the idempotency key of a producer that took it for one; anything else
 * is what others gave.
 */
export function recognize(text: string): Sought[] {
  const parse = (kinds: readonly FindKind[]) =>
    kinds.flatMap((kind) => {
      const sought = parseSought(text, kind);
      return sought.ok ? [sought.value] : [];
    });
  const ids = parse(["event_id", "delivery_id", "webhook_id"]);
  return ids.length > 0
    ? [...ids, ...parse(["idempotency_key"])]
    : parse(["idempotency_key", "partner_request_id", "ordering_key"]);
}
