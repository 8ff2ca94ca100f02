import { decodeBase64Url, encodeBase64Url } from "./base64.ts";
import { ok, refuse, type Result } from "./result.ts";

const MAX_CURSOR_LENGTH = 512;

type PartTypes = { string: string; number: number };
type CursorParts<Shape extends readonly (keyof PartTypes)[]> = { -readonly [I in keyof Shape]: PartTypes[Shape[I]] };

/**
 * The key of a list's last row as an opaque cursor: base64url of a JSON array of strings and integers. Keys that give more
 * than 512 characters are not read back by `parseCursor`.
 */
export function encodeCursor(parts: readonly (string | number)[]): string {
  return encodeBase64Url(new TextEncoder().encode(JSON.stringify(parts)));
}

/**
 * Reads a cursor back as the parts that `shape` names, in order. A cursor comes from outside: it is only ever a place to
 * start from, compared with rows the caller may see anyway.
 */
export function parseCursor<const Shape extends readonly (keyof PartTypes)[]>(
  text: string,
  shape: Shape,
): Result<CursorParts<Shape>, "malformed_cursor"> {
  if (text.length > MAX_CURSOR_LENGTH) return refuse("malformed_cursor");
  const bytes = decodeBase64Url(text);
  if (!bytes.ok) return refuse("malformed_cursor");
  const parts = parseJson(bytes.value);
  if (!Array.isArray(parts) || parts.length !== shape.length) return refuse("malformed_cursor");
  const fits = shape.every((type, i) =>
    type === "string" ? typeof parts[i] === "string" : Number.isSafeInteger(parts[i]),
  );
  return fits ? ok(parts as CursorParts<Shape>) : refuse("malformed_cursor");
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
