import { z } from "zod";
import { parseCursor } from "../../core/cursor.ts";
import { invalidField } from "../app-error.ts";
import { Time } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";

/** Rows of one answer: a hundred pages, which a request of the Workers Paid plan may well read. */
export const MAX_EXPORT_ROWS = 50_000;

const Limit = z
  .string()
  .regex(/^[1-9]\d{0,4}$/, `must be a whole number from 1 to ${MAX_EXPORT_ROWS}`)
  .transform(Number)
  .pipe(z.number().min(1).max(MAX_EXPORT_ROWS))
  .meta({ jsonSchema: { type: "integer", minimum: 1, maximum: MAX_EXPORT_ROWS, default: MAX_EXPORT_ROWS } });

export const ExportInput = z.strictObject({
  created_after: Time.optional(),
  created_before: Time.optional(),
  limit: Limit.optional(),
  cursor: z.string().optional(),
  after: z.string().optional(),
});

type Shape = readonly ("string" | "number")[];

/** The query of an export; `cursor` and `after` both say where to go on, so at most one of them is given. */
export function parseExport(query: unknown) {
  const input = parseInput(ExportInput, query);
  if (input.cursor !== undefined && input.after !== undefined) {
    throw invalidField("after", "and cursor both say where to go on: give one of them");
  }
  return { ...input, limit: input.limit ?? MAX_EXPORT_ROWS };
}

/** The place that an export of this kind has given out. */
export function readPlace<Place extends (string | number)[]>(cursor: string, kind: string, shape: Shape): Place {
  const parsed = parseCursor(cursor, ["string", ...shape]);
  if (!parsed.ok || parsed.value[0] !== kind) throw invalidField("cursor", "is not a cursor that this export gave out");
  return parsed.value.slice(1) as Place;
}
