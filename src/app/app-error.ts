import type { SourcePosition } from "../core/filter/source.ts";
import type { PinnedSubscription } from "../core/model.ts";

/** Every refusal a caller can get. `http/problem.ts` gives each its status. */
export type ErrorCode =
  | "invalid_json"
  | "invalid_utf8"
  | "unauthorized"
  | "invalid_signature"
  | "forbidden"
  | "tenant_suspended"
  | "event_type_not_allowed"
  | "event_type_not_registered"
  | "not_found"
  | "method_not_allowed"
  | "name_taken"
  | "version_taken"
  | "version_in_use"
  | "quota_exceeded"
  | "endpoint_disabled"
  | "endpoint_deleted"
  | "destination_blocked"
  | "in_flight"
  | "not_pending"
  | "not_terminal"
  | "held"
  | "not_blocked"
  | "payload_erased"
  | "replay_ended"
  | "version_not_published"
  | "version_retired"
  | "rotation_in_progress"
  | "payload_too_large"
  | "uri_too_long"
  | "request_too_large"
  | "unsupported_media_type"
  | "validation_failed"
  | "not_supported"
  | "duplicate_field"
  | "idempotency_key_reused"
  | "fan_out_too_large"
  | "rate_limited"
  | "loop_detected"
  | "unavailable";

/** What is wrong with one field; the path is dotted, `events.3.type`, empty for the whole body. */
export interface FieldError {
  path: string;
  message: string;
  /** Of what is wrong inside a filter. */
  position?: SourcePosition;
}

/** What a use-case throws when it refuses: the code decides the status, the detail says what to do. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly errors: FieldError[] | undefined;
  /** Those that stand in the way of what was asked for. */
  subscriptions: PinnedSubscription[] | undefined;

  constructor(code: ErrorCode, detail: string, errors?: FieldError[]) {
    super(detail);
    this.name = "AppError";
    this.code = code;
    this.errors = errors;
  }
}

/** The answer for an id of nothing and for another tenant's, always the same. */
export function notFound(noun: string): AppError {
  return new AppError("not_found", `No such ${noun}.`);
}

/** The tenant has all it may have of these. */
export function quotaExceeded(nouns: string): AppError {
  return new AppError(
    "quota_exceeded",
    `The tenant has as many ${nouns} as it may have. Delete some, or ask for more.`,
  );
}

/** A field whose value cannot be accepted. */
export function invalidField(path: string, message: string): AppError {
  return new AppError("validation_failed", "The request has invalid fields.", [{ path, message }]);
}
