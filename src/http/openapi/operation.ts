import type { z } from "zod";
import type { ProblemCode } from "../problem.ts";
import { REQUESTS } from "./registries.ts";

/**
 * Who may call. `anyone` needs no token. The operator's token does all that an admin key does, for the tenant it names, and
 * alone what is `operator`; `metrics` has a token of its own.
 */
export type Access = "anyone" | "metrics" | "publish" | "read" | "admin" | "operator";

/** A body or an answer: what it may be called, and its form. Bytes have no schema. */
export interface Content {
  type: string;
  schema?: z.ZodType;
  /** Of a request: one that is valid but for ids in it. Shown, and what the tests send. */
  example?: unknown;
}

export interface AnswerDeclaration {
  description: string;
  content?: Content[];
  headers?: Record<string, string>;
}

/** All that is public about one route: what the document says of it, and what the tests hold it to. */
export interface Operation {
  /** Unique, and never changed: generated clients name their functions by it. */
  id: string;
  method: "get" | "post" | "patch" | "delete";
  /** With `{id}`, or `{name}`, where one goes. */
  path: string;
  tag: string;
  summary: string;
  description?: string;
  access: Access;
  query?: z.ZodObject;
  /** Of a query: values that are valid, to send one whole request. */
  queryExample?: Record<string, string>;
  takesIdempotencyKey?: true;
  body?: Content[];
  /** By status; problems come by their codes. */
  answers: Record<number, AnswerDeclaration>;
  /** What can be refused beside what `problemsOf` adds for its access, path and body. */
  problems?: ProblemCode[];
}

export function json(schema: z.ZodType): Content[] {
  return [{ type: "application/json", schema }];
}

/** A JSON body, under the name it has in the document. */
export function jsonBody(name: string, schema: z.ZodType, example: unknown): Content[] {
  if (!REQUESTS.has(schema)) REQUESTS.add(schema, { id: name });
  return [{ type: "application/json", schema, example }];
}

export function answer(description: string, schema?: z.ZodType): AnswerDeclaration {
  return { description, ...(schema && { content: json(schema) }) };
}

/** What every operation of its kind can answer: said once, here. */
export function problemsOf(operation: Operation): ProblemCode[] {
  const { access, path, body, method } = operation;
  const codes = new Set<ProblemCode>(operation.problems);
  codes.add("uri_too_long");
  if (access === "anyone") return [...codes];
  if (access === "metrics") {
    return [...codes, "unauthorized", "not_found", "validation_failed", "duplicate_field", "internal_error"];
  }
  // 422 also for a query parameter that is unknown or given twice; 404 also for a tenant named in X-Tenant-Id.
  const always: ProblemCode[] = ["unauthorized", "forbidden", "validation_failed", "duplicate_field", "loop_detected"];
  for (const code of [...always, "internal_error", "unavailable"] as const) codes.add(code);
  if (access !== "operator" || path.includes("{")) codes.add("not_found");
  if (access === "publish") codes.add("invalid_signature");
  // A deletion takes a body that says nothing, like an action.
  const readsJson = method === "delete" || body?.some(({ type }) => type === "application/json");
  // For what is not built, and for an `Idempotency-Key` where nothing reads it.
  if (method !== "get") codes.add("not_supported");
  if (readsJson) for (const code of ["invalid_json", "invalid_utf8"] as const) codes.add(code);
  if (readsJson && access !== "publish") codes.add("request_too_large");
  return [...codes];
}
