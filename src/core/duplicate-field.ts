import { scanJson } from "./json-span.ts";

const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;

/**
 * The dotted path of the first field that an object of this JSON text gives twice, plain or escaped; null when none does.
 * A parser would keep the last of them and pass over the others. Each level of nesting is one more pass over its bytes.
 */
export function findDuplicateField(json: Uint8Array, path = ""): string | null {
  const names = new Set<string>();
  let found: string | null = null;
  let index = 0;
  scanJson(json, ({ key, value }) => {
    if (found !== null) return;
    const name = key === null ? String(index++) : nameOf(json.subarray(key.start, key.end));
    const here = path === "" ? name : `${path}.${name}`;
    if (names.has(name)) found = here;
    names.add(name);
    const first = json[value.start];
    if (found === null && (first === OPEN_OBJECT || first === OPEN_ARRAY)) {
      found = findDuplicateField(json.subarray(value.start, value.end), here);
    }
  });
  return found;
}

function nameOf(quoted: Uint8Array): string {
  return JSON.parse(new TextDecoder().decode(quoted)) as string;
}
