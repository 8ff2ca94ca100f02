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
  if (issue.code !== "unrecognized_keys") return [{ path: pathOf(issue.path), message: issue.message }];
  const keys = issue.keys.slice(0, MAX_ERRORS);
  return keys.map((key) => ({ path: pathOf([...issue.path, key]), message: "is not a known field" }));
}

function pathOf(path: PropertyKey[]): string {
  return path.join(".").slice(0, MAX_PATH_LENGTH);
}
