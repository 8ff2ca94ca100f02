import { z } from "zod";
import { RetryPolicy } from "../../core/retry-policy.ts";
import { ANSWERS } from "../openapi/registries.ts";

/** The kinds of fields that answers are made of. */
export const time = z.string().meta({ format: "date-time" });
export const sha256 = z.string().meta({ pattern: "^[0-9a-f]{64}$" });

export function id(prefix: string) {
  return z.string().meta({ pattern: `^${prefix}_[0-9a-z]+$` });
}

/** A text that is one of these so far, from a ledger whose type says only that it is text. */
export function known(values: readonly string[]) {
  return z.string().meta({ enum: [...values] });
}

export const wholePolicy = RetryPolicy.register(ANSWERS, { id: "RetryPolicy" });
