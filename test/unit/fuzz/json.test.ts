import fc from "fast-check";
import { expect, test } from "vitest";
import { isJson, readJson, scanJson, type JsonItem } from "../../../src/core/json-span.ts";
import { byteChange, changeBytes, encode, jsonText, parseStrictly } from "./support/json-text.ts";

const RUNS = { seed: 20261201, numRuns: 1_000 };

test("whatever JSON is written, its items are found exactly where they were put", () => {
  fc.assert(
    fc.property(jsonText, ({ text, kind, items }) => {
      const bytes = encode(text);
      const found: JsonItem[] = [];
      expect(scanJson(bytes, (item) => found.push(item))).toEqual({ ok: true, value: kind });
      const slice = ({ start, end }: { start: number; end: number }) =>
        new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end));
      expect(found.map((item) => ({ key: item.key && slice(item.key), value: slice(item.value) }))).toEqual(items);
      // What lies between two items is punctuation, so that a slice that is right by its text is right by its place.
      let last = 0;
      for (const item of found) {
        const { start } = item.key ?? item.value;
        expect(slice({ start: last, end: start })).toMatch(/^[\s{[,]*$/);
        if (item.key) expect(slice({ start: item.key.end, end: item.value.start })).toMatch(/^\s*:\s*$/);
        last = item.value.end;
      }
      expect(slice({ start: last, end: bytes.length })).toMatch(found.length > 0 ? /^\s*[\]}]$/ : /^/);
    }),
    RUNS,
  );
});

test("its values and keys read as JSON.parse reads them", () => {
  fc.assert(
    fc.property(jsonText, ({ text, items }) => {
      const bytes = encode(text);
      const found: [unknown, unknown][] = [];
      scanJson(bytes, ({ key, value }) => found.push([key && readJson(bytes, key), readJson(bytes, value)]));
      expect(found).toEqual(items.map(({ key, value }) => [key && JSON.parse(key), JSON.parse(value)]));
    }),
    RUNS,
  );
});

test("it passes at its own depth and not at one less", () => {
  fc.assert(
    fc.property(jsonText, ({ text, depth }) => {
      const bytes = encode(text);
      expect(scanJson(bytes, () => {}, depth).ok).toBe(true);
      if (depth === 0) return;
      expect(scanJson(bytes, () => {}, depth - 1)).toMatchObject({ ok: false, error: { reason: "too_deep" } });
    }),
    RUNS,
  );
});

test("with bytes changed it is JSON exactly when the platform's decoder and parser take it", () => {
  fc.assert(
    fc.property(jsonText, byteChange, ({ text }, change) => {
      const bytes = changeBytes(encode(text), change);
      expect(isJson(bytes)).toBe(parseStrictly(bytes) !== undefined);
    }),
    { ...RUNS, numRuns: 3_000 },
  );
});
