import { z } from "zod";
import type { AppError, ErrorCode, FieldError } from "../app/app-error.ts";
import { ANSWERS } from "./openapi/registries.ts";
import { id } from "./present/fields.ts";

/** Of those that stand in the way of what was asked for. */
const MAX_SUBSCRIPTIONS_SHOWN = 100;

/** code → HTTP status and title: the one place where a refusal gets its status. */
const PROBLEMS: Record<ErrorCode | "internal_error", { status: number; title: string }> = {
  invalid_json: { status: 400, title: "Malformed JSON" },
  invalid_utf8: { status: 400, title: "Malformed UTF-8" },
  unauthorized: { status: 401, title: "Unauthorized" },
  invalid_signature: { status: 401, title: "Invalid signature" },
  forbidden: { status: 403, title: "Forbidden" },
  tenant_suspended: { status: 403, title: "Tenant suspended" },
  event_type_not_allowed: { status: 403, title: "Event type not allowed" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  name_taken: { status: 409, title: "Name taken" },
  version_taken: { status: 409, title: "Version taken" },
  version_in_use: { status: 409, title: "Version in use" },
  quota_exceeded: { status: 409, title: "Quota exceeded" },
  endpoint_disabled: { status: 409, title: "Endpoint disabled" },
  endpoint_deleted: { status: 409, title: "Endpoint deleted" },
  destination_blocked: { status: 409, title: "Destination blocked" },
  in_flight: { status: 409, title: "Attempt in flight" },
  not_pending: { status: 409, title: "Delivery not pending" },
  not_terminal: { status: 409, title: "Delivery not terminal" },
  not_blocked: { status: 409, title: "Not a blocked head" },
  held: { status: 409, title: "Delivery held" },
  payload_erased: { status: 409, title: "Payload erased" },
  replay_ended: { status: 409, title: "Replay ended" },
  version_not_published: { status: 409, title: "Version not published" },
  version_retired: { status: 409, title: "Version retired" },
  rotation_in_progress: { status: 409, title: "Rotation in progress" },
  payload_too_large: { status: 413, title: "Payload too large" },
  request_too_large: { status: 413, title: "Request too large" },
  uri_too_long: { status: 414, title: "URI too long" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  event_type_not_registered: { status: 422, title: "Event type not registered" },
  validation_failed: { status: 422, title: "Validation failed" },
  not_supported: { status: 422, title: "Not supported" },
  duplicate_field: { status: 422, title: "Duplicate field" },
  idempotency_key_reused: { status: 422, title: "Idempotency key reused" },
  fan_out_too_large: { status: 422, title: "Fan-out too large" },
  rate_limited: { status: 429, title: "Too many requests" },
  loop_detected: { status: 422, title: "Loop detected" },
  internal_error: { status: 500, title: "Internal error" },
  unavailable: { status: 503, title: "Unavailable" },
};

export type ProblemCode = keyof typeof PROBLEMS;
const PROBLEM_CODES = Object.keys(PROBLEMS) as ProblemCode[];

/** A place in a filter: from 0 in characters, and from 1 in lines and columns. */
export const SourcePosition = z
  .object({ offset: z.int(), line: z.int(), column: z.int() })
  .register(ANSWERS, { id: "SourcePosition" });

/** An RFC 9457 problem as it goes over the wire. */
export const ProblemAnswer = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(PROBLEM_CODES),
    request_id: z.string(),
    errors: z
      .array(
        z.object({
          path: z.string(),
          message: z.string(),
          position: SourcePosition.optional(),
        }),
      )
      .optional(),
    subscriptions: z
      .array(z.object({ id: id("sub"), endpoint_id: id("ep"), event_type_pattern: z.string() }))
      .optional(),
  })
  .register(ANSWERS, { id: "Problem" });
export type Problem = z.infer<typeof ProblemAnswer>;

export function statusOf(code: ProblemCode): number {
  return PROBLEMS[code].status;
}

export function titleOf(code: ProblemCode): string {
  return PROBLEMS[code].title;
}

export function toProblem(error: AppError, requestId: string): Problem {
  const subscriptions = error.subscriptions?.slice(0, MAX_SUBSCRIPTIONS_SHOWN).map((subscription) => ({
    id: subscription.id,
    endpoint_id: subscription.endpointId,
    event_type_pattern: subscription.eventTypePattern,
  }));
  return { ...problem(error.code, error.message, requestId, error.errors), ...(subscriptions && { subscriptions }) };
}

/** A fault of ours: says nothing but where to look. */
export function internalProblem(requestId: string): Problem {
  return problem("internal_error", "Something went wrong on our side. Quote the request_id.", requestId);
}

function problem(code: ProblemCode, detail: string, requestId: string, errors?: FieldError[]): Problem {
  const { status, title } = PROBLEMS[code];
  return {
    type: `urn:hooklane:problem:${code}`,
    title,
    status,
    detail,
    code,
    request_id: requestId,
    ...(errors && { errors }),
  };
}
