/** What changes from run to run, and how it looks. Anything else that is one word must be the same. */
const SHAPES = [
  /^(ten|src|ep|sec|sub|key|evt|dlv|msg|rpl|req)_[0-9a-z]+(:\d+)?$/,
  /^hlk_\S+$/,
  /^whsec_\S+$/,
  /^v1,\S+$/,
  // A cursor.
  /^Wy[\w-]+$/,
  /^[0-9a-f-]{36}\.[0-9a-z]{8}\.(queue|lane|test)$/,
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  /^\d+$/,
  /^[0-9a-f]{32,}$/,
];

/**
 * Why an answer is not as a page shows it, null when it is: the same fields, of the same types, words the same, ids and times
 * of the same kind. Of a list the first item counts. Numbers and sentences may differ.
 */
export function mismatch(shown: unknown, got: unknown, path = "the answer"): string | null {
  if (kind(shown) !== kind(got)) return `${path} is ${JSON.stringify(got)}, shown is ${JSON.stringify(shown)}`;
  if (Array.isArray(shown) && Array.isArray(got)) {
    if (shown.length === 0) return null;
    return got.length === 0 ? `${path} is empty` : mismatch(shown[0], got[0], `${path}[0]`);
  }
  if (isObject(shown) && isObject(got)) {
    const missing = Object.keys(shown).filter((name) => !(name in got));
    const more = Object.keys(got).filter((name) => !(name in shown));
    if (missing.length > 0) return `${path} lacks ${missing.join(", ")}`;
    if (more.length > 0) return `${path} has ${more.join(", ")}, which is not shown`;
    return Object.keys(shown).reduce<string | null>(
      (found, name) => found ?? mismatch(shown[name], got[name], `${path}.${name}`),
      null,
    );
  }
  if (typeof shown !== "string" || typeof got !== "string") return null;
  const shape = SHAPES.find((pattern) => pattern.test(shown));
  const isSame = shape ? shape.test(got) && prefix(shown) === prefix(got) : /\s/.test(shown) || shown === got;
  return isSame ? null : `${path} is ${JSON.stringify(got)}, shown is ${JSON.stringify(shown)}`;
}

const prefix = (text: string) => /^([a-z]+_|v1,)?/.exec(text)![0];
const kind = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "list" : typeof value);
const isObject = (value: unknown): value is Record<string, unknown> => kind(value) === "object";
