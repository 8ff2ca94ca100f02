import fc from "fast-check";
import { expect, test } from "vitest";
import { isJson } from "../../../src/core/json-span.ts";
import {
  parseBatchBody,
  parseNdjsonBody,
  parsePublishBody,
  type PublishBody,
  type PublishBodyError,
} from "../../../src/core/publish-body.ts";
import type { Result } from "../../../src/core/result.ts";
import { byteChange, changeBytes, encode, jsonText, parseStrictly } from "./support/json-text.ts";

const RUNS = { seed: 20261201, numRuns: 500 };

const name = fc.constantFrom("payload", "type", "source", "x", "é", "__proto__", "constructor", "");
/** A key with some of its letters spelled as escapes. */
const spelling = fc.tuple(name, fc.nat(255)).map(([text, mask]) => ({
  text,
  written: `"${Array.from(text, (letter, i) =>
    (mask >> i) & 1 ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}` : letter,
  ).join("")}"`,
}));
const event = fc.array(fc.tuple(spelling, jsonText), { maxLength: 5 }).map((members) => ({
  members,
  text: `{${members.map(([key, { text }]) => `${key.written}:${text}`).join(", ")}}`,
}));

/** What a reader who knows how it was written makes of it. */
function expected(members: [{ text: string }, { text: string }][]) {
  const fields: [string, unknown][] = [];
  let payload: string | null = null;
  for (const [key, value] of members) {
    const isTwice = key.text === "payload" ? payload !== null : fields.some(([known]) => known === key.text);
    if (isTwice) return { duplicate: key.text };
    if (key.text === "payload") payload = value.text;
    else fields.push([key.text, JSON.parse(value.text)]);
  }
  return { fields, payload };
}

function actual(result: Result<PublishBody, PublishBodyError>) {
  if (!result.ok) return result.error.reason === "duplicate_field" ? { duplicate: result.error.path } : result.error;
  const { fields, payload } = result.value;
  const text = payload && new TextDecoder("utf-8", { ignoreBOM: true }).decode(payload);
  return { fields: Object.entries(fields), payload: text };
}

test("an event is taken apart as it was put together, whatever its fields, their spelling and order", () => {
  fc.assert(
    fc.property(event, ({ members, text }) => {
      expect(actual(parsePublishBody(encode(text)))).toEqual(expected(members));
    }),
    RUNS,
  );
});

test("a batch, and NDJSON, answer each event as it would be answered alone, faults at their place in the request", () => {
  const junk = fc.oneof(jsonText, fc.constant({ text: '{"a":1,"a":2}' }));
  const elements = fc.array(fc.oneof(event, junk), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(elements, (given) => {
      const texts = given.map(({ text }) => text.replace(/[\r\n]/g, " "));
      const alone = texts.map((text) => parsePublishBody(encode(text)));
      for (const [body, parse] of [
        [`{"events":[${texts.join(",")}]}`, parseBatchBody],
        [texts.join("\n"), parseNdjsonBody],
      ] as const) {
        const result = parse(encode(body), 5);
        if (!result.ok) throw new Error(`refused as ${result.error.reason}: ${body}`);
        let start = parse === parseBatchBody ? '{"events":['.length : 0;
        for (const [i, one] of result.value.entries()) {
          const known = alone[i]!;
          if (known.ok) expect(actual(one)).toEqual(actual(known));
          else expect(one).toEqual(moved(known, start));
          start += encode(texts[i]!).length + 1;
        }
      }
    }),
    RUNS,
  );
});

function moved(refused: { ok: false; error: PublishBodyError }, by: number): Result<PublishBody, PublishBodyError> {
  const { offset, ...rest } = refused.error;
  return { ok: false, error: offset === undefined ? rest : { ...rest, offset: offset + by } };
}

test("with bytes changed, what is accepted is JSON still, and its payload stands in the request", () => {
  fc.assert(
    fc.property(event, byteChange, ({ text }, change) => {
      const bytes = changeBytes(encode(text), change);
      const result = parsePublishBody(bytes);
      if (!result.ok) return;
      const withoutBom = bytes[0] === 0xef ? bytes.subarray(3) : bytes;
      expect(parseStrictly(withoutBom)).toBeTypeOf("object");
      const { payload } = result.value;
      if (payload === null) return;
      expect(payload.buffer).toBe(bytes.buffer);
      expect(isJson(payload)).toBe(true);
    }),
    { ...RUNS, numRuns: 2_000 },
  );
});

test("with bytes changed, a batch throws nothing and takes no event that would not be taken alone", () => {
  const batch = fc.tuple(event, event).map((events) => events.map(({ text }) => text.replace(/[\r\n]/g, " ")));
  fc.assert(
    fc.property(batch, byteChange, (texts, change) => {
      const bodies = [`{"events":[${texts.join(",")}]}`, texts.join("\n")].map((text) =>
        changeBytes(encode(text), change),
      );
      for (const [i, body] of bodies.entries()) {
        const result = (i === 0 ? parseBatchBody : parseNdjsonBody)(body, 4);
        for (const one of result.ok ? result.value : []) {
          if (one.ok && one.value.payload) expect(isJson(one.value.payload)).toBe(true);
        }
      }
    }),
    { ...RUNS, numRuns: 1_000 },
  );
});
