/** Every `error_class` an attempt can have. `internal` and `abandoned` are the relay's own faults. */
export const ERROR_CLASSES = [
  "http_3xx",
  "http_4xx",
  "http_5xx",
  "rate_limited",
  "gone",
  "timeout",
  "dns",
  "connect",
  "tls",
  "reset",
  "network",
  "blocked_destination",
  "abandoned",
  "internal",
] as const;

export type ErrorClass = (typeof ERROR_CLASSES)[number];

export const OUTCOME_CLASSES = ["success", "transient", "rejected", "unreachable"] as const;
export type OutcomeClass = (typeof OUTCOME_CLASSES)[number];

/** Why a delivery ended: `delivery.final_outcome`. */
export const FINAL_OUTCOMES = [
  "delivered",
  "rejected",
  "exhausted",
  "same_error",
  "gone",
  "expired",
  "held_too_long",
  "endpoint_disabled",
  "endpoint_deleted",
  "destination_blocked",
  "version_retired",
  "version_not_published",
  "payload_missing",
  "cancelled",
  "abandoned",
] as const;
export type FinalOutcome = (typeof FINAL_OUTCOMES)[number];

/** What the wire did with one request. */
export type WireResult =
  /** Headers came. `bodyComplete` is false when the receiver cut the body off or it could not be
   *  decoded; true when it was read to its end, or to our own cap. */
  | { kind: "response"; status: number; bodyComplete: boolean }
  /** The deadline passed first. `status` is what the headers said, null when none had come. */
  | { kind: "timeout"; status: number | null }
  /** The outbound request threw before any headers. */
  | { kind: "thrown"; message: string }
  /** A fault of the relay after the attempt was opened: nothing can be said about the endpoint. */
  | { kind: "internal" };

export type AttemptOutcome = {
  outcomeClass: OutcomeClass;
  errorClass: ErrorClass | null;
  statusCode: number | null;
};

/**
 * Statuses by which Cloudflare's edge reports that it could not reach the destination.
 * Source: Cloudflare's "5xx errors" reference (520–526, 530) and the retired Railgun code 527.
 */
const EDGE_FAILURES: ReadonlyMap<number, ErrorClass> = new Map([
  [520, "reset"],
  [521, "connect"],
  [522, "timeout"],
  [523, "connect"],
  [524, "timeout"],
  [525, "tls"],
  [526, "tls"],
  [527, "network"],
  [530, "dns"],
]);

/**
 * Judges one request. An answer counts only when it is complete: cut off or late it is
 * `unreachable`, whatever its status said, because the receiver may not have acted on it.
 */
export function classifyOutcome(
  wire: WireResult,
  policy: { readonly reject_statuses: readonly number[] },
): AttemptOutcome {
  switch (wire.kind) {
    case "internal":
      return unreachable("internal", null);
    case "thrown":
      return unreachable(classifyThrown(wire.message), null);
    case "timeout":
      return unreachable("timeout", finalStatus(wire.status));
    case "response":
      return classifyResponse(wire.status, wire.bodyComplete, policy.reject_statuses);
  }
}

/** Whether the receiver answered completely, whatever it said: the edge speaking in its place does not count. */
export function isAnswer(wire: WireResult | { kind: "abandoned" }): boolean {
  return wire.kind === "response" && wire.bodyComplete && !EDGE_FAILURES.has(wire.status);
}

function classifyResponse(status: number, bodyComplete: boolean, rejectStatuses: readonly number[]): AttemptOutcome {
  const statusCode = finalStatus(status);
  if (statusCode === null) return unreachable("network", null);
  if (!bodyComplete) return unreachable("reset", statusCode);
  if (statusCode < 300) return { outcomeClass: "success", errorClass: null, statusCode };
  const errorClass = EDGE_FAILURES.get(statusCode) ?? classOfStatus(statusCode);
  // The policy speaks first: whoever lists a status, edge failures included, asked for its end.
  if (rejectStatuses.includes(statusCode)) {
    return { outcomeClass: "rejected", errorClass, statusCode };
  }
  if (EDGE_FAILURES.has(statusCode)) return unreachable(errorClass, statusCode);
  return { outcomeClass: "transient", errorClass, statusCode };
}

function unreachable(errorClass: ErrorClass, statusCode: number | null): AttemptOutcome {
  return { outcomeClass: "unreachable", errorClass, statusCode };
}

/** Null for what is no final answer: an interim 1xx (RFC 9110 §15.2) or a number outside HTTP's range. */
function finalStatus(status: number | null): number | null {
  if (status === null || !Number.isInteger(status)) return null;
  return status >= 200 && status <= 599 ? status : null;
}

function classOfStatus(status: number): ErrorClass {
  if (status === 429) return "rate_limited";
  if (status === 410) return "gone";
  if (status < 400) return "http_3xx";
  return status < 500 ? "http_4xx" : "http_5xx";
}

/**
 * Messages by class, first match wins. Codes stand before words, since a message may also carry a
 * host name that reads like one ("getaddrinfo ENOTFOUND tls.example.com").
 */
const THROWN: readonly (readonly [RegExp, ErrorClass])[] = [
  [/\b(ENOTFOUND|EAI_[A-Z]+)\b|\bgetaddrinfo\b/, "dns"],
  [/\b(ETIMEDOUT|UND_ERR_[A-Z]+_TIMEOUT|TimeoutError)\b/, "timeout"],
  [/\b(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)\b/, "connect"],
  [/\b(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_SOCKET)\b/, "reset"],
  [/\b(TLS|SSL)\b|certificate|\bCERT_|_CERT\b|ERR_(TLS|SSL)_/i, "tls"],
  [/dns (lookup|error|failure)|lookup address information|resolve host|name not resolved/i, "dns"],
  [/timed out|time-?out/i, "timeout"],
  [/connection refused|(host|network) (is )?unreachable|no route to host/i, "connect"],
  [/\breset\b|disconnected|hang up|closed prematurely|other side closed|broken pipe/i, "reset"],
];

/**
 * The class of what the outbound request threw: whatever it is, it is the endpoint's.
 * Measured on workerd: refused, reset and closed connections all say "Network connection lost.",
 * DNS and TLS failures only "internal error; reference = …": those stay `network`.
 */
export function classifyThrown(message: string): ErrorClass {
  return THROWN.find(([pattern]) => pattern.test(message))?.[1] ?? "network";
}
