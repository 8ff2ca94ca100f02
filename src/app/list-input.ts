import { z } from "zod";
import { encodeCursor, parseCursor } from "../core/cursor.ts";
import type { PageKey, PageRequest } from "../core/model.ts";
import type { Place, Side } from "../core/two-way.ts";
import { invalidField } from "./app-error.ts";
import { parseInput } from "./parse-input.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 250;

const Limit = z
  .string()
  .regex(/^\d{1,3}$/, `must be a whole number from 1 to ${MAX_LIMIT}`)
  .transform(Number)
  .pipe(z.number().min(1).max(MAX_LIMIT))
  .meta({ jsonSchema: { type: "integer", minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT } });

/** In the order of their numbers in cursors. The first, which all lists have, has none. */
const SIDES: Side[] = ["older", "older_or_same", "newer", "newer_or_same"];

type CursorPlace = { key: PageKey; side: Side };

const Cursor = z.string().transform((text, context): CursorPlace => {
  const oneWay = parseCursor(text, ["number", "string"]);
  if (oneWay.ok) return { key: { createdAt: oneWay.value[0], id: oneWay.value[1] }, side: "older" };
  const twoWay = parseCursor(text, ["number", "string", "number"]);
  const side = twoWay.ok ? SIDES[twoWay.value[2]] : undefined;
  if (twoWay.ok && side) return { key: { createdAt: twoWay.value[0], id: twoWay.value[1] }, side };
  context.addIssue({ code: "custom", message: "is not a cursor that a list gave out" });
  return z.NEVER;
});

/** A page of a list; `nextCursor` is null on the last one. */
export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

/** A page of a list that is read both ways; `prevCursor` is null where nothing is newer. */
export interface TwoWayPage<T> extends Page<T> {
  prevCursor: string | null;
}

/** The query of a list with these parameters of its own. */
export function listInput<Extra extends z.ZodRawShape>(extra: Extra) {
  return z.strictObject({ ...extra, limit: Limit.optional(), cursor: Cursor.optional() });
}

/**
 * Reads the query of a list: `limit` (1–250, default 50), `cursor`, and the list's own parameters in `extra`. Any other
 * parameter is refused (422), and so is a cursor of another list: its rows' ids do not begin with `idPrefix`.
 */
export function parsePage<Extra extends z.ZodRawShape>(
  query: unknown,
  extra: Extra,
  idPrefix: string,
): PageRequest & z.infer<z.ZodObject<Extra>> {
  const { from, ...request } = parseTwoWayPage(query, extra, idPrefix);
  if (from !== null && from.side !== "older") throw invalidCursor();
  return { ...request, after: from && from.key } as PageRequest & z.infer<z.ZodObject<Extra>>;
}

/** The same for a list whose cursors lead back too. */
export function parseTwoWayPage<Extra extends z.ZodRawShape>(
  query: unknown,
  extra: Extra,
  idPrefix: string,
): { limit: number; from: Place<PageKey> | null } & z.infer<z.ZodObject<Extra>> {
  const {
    limit = DEFAULT_LIMIT,
    cursor = null,
    ...own
  } = parseInput(listInput(extra), query) as {
    limit?: number;
    cursor?: CursorPlace;
  };
  if (cursor !== null && !cursor.key.id.startsWith(`${idPrefix}_`)) throw invalidCursor();
  return { ...(own as z.infer<z.ZodObject<Extra>>), limit, from: cursor };
}

export function invalidCursor() {
  return invalidField("cursor", "is not a cursor that this list gave out");
}

/** The cursor to what is on this side of a row. */
export function encodePlace({ key: { createdAt, id }, side }: Place<PageKey>): string {
  return encodeCursor(side === "older" ? [createdAt, id] : [createdAt, id, SIDES.indexOf(side)]);
}

/** Reads one row more than asked for, which tells whether another page follows. `keyOf` gives a row's place in the list. */
export async function readPage<T>(
  request: PageRequest,
  read: (request: PageRequest) => Promise<T[]>,
  keyOf: (row: T) => PageKey,
): Promise<Page<T>> {
  const rows = await read({ limit: request.limit + 1, after: request.after });
  const data = rows.slice(0, request.limit);
  const last = data.at(-1);
  if (rows.length <= request.limit || last === undefined) return { data, nextCursor: null };
  const { createdAt, id } = keyOf(last);
  return { data, nextCursor: encodeCursor([createdAt, id]) };
}
