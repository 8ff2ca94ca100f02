import type { Context } from "hono";
import { z } from "zod";
import { AppError, invalidField } from "../app/app-error.ts";
import { parseInput } from "../app/parse-input.ts";
import { unauthorized } from "../app/authenticate.ts";
import { concatBytes } from "../core/bytes.ts";
import { findDuplicateField } from "../core/duplicate-field.ts";
import { readJson as readJsonAt, scanJson } from "../core/json-span.ts";

const MAX_JSON_BYTES = 65_536;
/** A longer one is nobody's: an API key has about 60 characters, an operator token at most 1,024. */
const MAX_AUTHORIZATION_LENGTH = 1_100;
const MAX_PATH_LENGTH = 128;

/**
 * The JSON body of a configuration request, `{}` when there is none. Refused: more than 64 KiB (before it is read to the
 * end), invalid UTF-8, malformed JSON, more than 128 levels of nesting. A leading BOM is passed over.
 */
export async function readJson(c: Context): Promise<unknown> {
  return readJsonOf(c.req.raw);
}

/** The body of routes that take nothing. */
export const NothingInput = z.strictObject({});

/** For routes that take nothing: a body that says something is refused. */
export async function readNothing(c: Context): Promise<void> {
  parseInput(NothingInput, await readJson(c));
}

/** The same for a request that somebody else will read again: give it a clone. */
export async function readJsonOf(request: Request): Promise<unknown> {
  const bytes = await readBytes(request, MAX_JSON_BYTES);
  if (bytes.length === 0) return {};
  const text = decodeUtf8(bytes);
  // Before it is parsed: whoever reads the value next may recurse. What is no JSON is the parser's to refuse.
  const json = new TextEncoder().encode(text);
  const scanned = scanJson(json, () => {});
  if (!scanned.ok && scanned.error.reason === "too_deep") throw invalidField("", "is nested too deeply");
  const value = parseJson(text);
  const twice = findDuplicateField(json);
  if (twice !== null) throw duplicateField("A field is given twice.", twice);
  return value;
}

/** The bearer token of a request; throws `unauthorized` when there is none. */
export function readBearerToken(c: Context): string {
  const header = c.req.header("Authorization") ?? "";
  const match = header.length <= MAX_AUTHORIZATION_LENGTH && /^Bearer +(\S+) *$/i.exec(header);
  if (!match) throw unauthorized();
  return match[1]!;
}

/** The query parameters; one that is given twice is refused. */
export function readQuery(c: Context): Record<string, string> {
  const query = new Map<string, string>();
  for (const [name, value] of new URL(c.req.url).searchParams) {
    if (query.has(name)) {
      throw duplicateField("A query parameter is given twice.", name);
    }
    query.set(name, value);
  }
  return Object.fromEntries(query);
}

/** The body as it came, refused before it is read to the end when it is larger than `maxBytes`. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  // What a length promises is checked here; one that is missing or untrue is caught below.
  if (Number(request.headers.get("Content-Length")) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return concatBytes(chunks);
}

/** Refuses a body (JSON, perhaps after a BOM) whose member `name` gives a field twice, at whatever depth. */
export function refuseDuplicatesIn(name: string, body: Uint8Array): void {
  const text = body[0] === 0xef ? body.subarray(3) : body;
  scanJson(text, ({ key, value }) => {
    if (key === null || key.end - key.start > MAX_PATH_LENGTH || readJsonAt(text, key) !== name) return;
    const twice = findDuplicateField(text.subarray(value.start, value.end), name);
    if (twice !== null) throw duplicateField("A field is given twice.", twice);
  });
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw new AppError("invalid_utf8", "The body is not valid UTF-8.");
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AppError("invalid_json", "The body is not valid JSON.");
  }
}

function duplicateField(detail: string, path: string): AppError {
  return new AppError("duplicate_field", detail, [{ path: path.slice(0, MAX_PATH_LENGTH), message: "is given twice" }]);
}

function tooLarge(maxBytes: number): AppError {
  return new AppError("request_too_large", `The body is larger than ${maxBytes} bytes.`);
}
