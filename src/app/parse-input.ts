import { z } from "zod";
import { AppError, type FieldError } from "./app-error.ts";

/** What is marked so is left out of the OpenAPI document. */
export const NOT_BUILT = "notBuilt";

/** Marks a field of the contract whose behaviour is not built: giving it is refused, leaving it out or null is not. */
export function notSupported() {
  return z
    .unknown()
    .optional()
    .superRefine((value, context) => {
      if (value === undefined || value === null) return;
      context.addIssue({ code: "custom", message: "is not supported yet", params: { notSupported: true } });
    })
    .meta({ [NOT_BUILT]: true });
}

/**
 * The value as the schema's type, or a 422 that names every bad field: `not_supported` when one of them is a part of
 * the contract that is not built, else `validation_failed`.
 */
export function parseInput<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const isUnbuilt = parsed.error.issues.some((issue) => issue.code === "custom" && issue.params?.["notSupported"]);
  throw new AppError(
    isUnbuilt ? "not_supported" : "validation_failed",
    isUnbuilt ? "The request uses what this version does not support." : "The request has invalid fields.",
    parsed.error.issues.flatMap(fieldErrors).slice(0, MAX_ERRORS),
  );
}

/** An answer must not be larger than what it answers. */
const MAX_ERRORS = 20;
const MAX_PATH_LENGTH = 128;

function fieldErrors(issue: z.core.$ZodIssue): FieldError[] {
  if (issue.code !== "unrecognized_keys") {
    const position = issue.code === "custom" ? (issue.params?.["position"] as FieldError["position"]) : undefined;
    return [{ path: pathOf(issue.path), message: messageOf(issue), ...(position && { position }) }];
  }
  const keys = issue.keys.slice(0, MAX_ERRORS);
  return keys.map((key) => ({ path: pathOf([...issue.path, key]), message: "is not a known field" }));
}

/** zod speaks to whoever wrote the schema; a caller is told what to send. Messages of our own stay as they are. */
function messageOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.message.endsWith("received undefined")
        ? "is required"
        : `must be ${TYPES[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "too_small":
      return sizeMessage(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum);
    case "too_big":
      return sizeMessage(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum);
    default:
      return issue.message;
  }
}

const TYPES: Record<string, string> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  record: "an object",
  array: "a list",
};

function sizeMessage(origin: string, bound: string, limit: number | bigint): string {
  if (origin === "string") return `must have ${bound} ${limit} characters`;
  if (origin === "array" || origin === "set") return `must have ${bound} ${limit} entries`;
  return `must be ${bound} ${limit}`;
}

function pathOf(path: PropertyKey[]): string {
  return path.join(".").slice(0, MAX_PATH_LENGTH);
}
