import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  parseBatchBody,
  parseNdjsonBody,
  parsePublishBody,
  type PublishBody,
  type PublishBodyError,
} from "../../../src/core/publish-body.ts";
import type { Result } from "../../../src/core/result.ts";

const SEED = { seed: 20261001 };

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes);
const join = (...parts: (string | number[])[]) =>
  Uint8Array.from(parts.flatMap((part) => [...(typeof part === "string" ? encode(part) : part)]));

/** An event as text: its payload's bytes, or the reason it was refused. */
function outcome(result: Result<PublishBody, PublishBodyError>) {
  if (!result.ok) return result.error.reason;
  return result.value.payload === null ? null : decode(result.value.payload);
}

function outcomes(result: ReturnType<typeof parseBatchBody | typeof parseNdjsonBody>) {
  return result.ok ? result.value.map(outcome) : result.error.reason;
}

/** Payloads that parsing and serialising again would change. */
const delicatePayloads = [
  "12345678901234567890123",
  "1.0",
  "-0",
  "1E+2",
  '"\\/\\u001B\\u00e9"',
  '"\u2028\u2029"',
  '"\ufeff"',
  '"\\ud800"',
  '{"b":1,"a":2,"b":3}',
  '{"10":1,"9":2}',
  '{"__proto__":{"x":1},"payload":1}',
  '[ 1 ,\r\n\t2 , { "a" : "}],\\"" } ]',
  '"\\\\"',
  "null",
  "{}",
];

describe("a payload", () => {
  test.each(delicatePayloads)("%s is taken byte for byte", (payload) => {
    const places = [
      `{"payload":${payload}}`,
      `{"type":"a.b","payload":${payload},"x":1}`,
      `\n{ "payload" :\t${payload}\r\n, "type" : "a.b" } `,
      `{"\\u0070ayload":${payload}}`,
      `\ufeff{"payload":${payload}}`,
    ];
    for (const body of places) expect(outcome(parsePublishBody(encode(body)))).toBe(payload);
    expect(outcomes(parseBatchBody(encode(`{"events":[ ${places[1]} ]}`), 1))).toEqual([payload]);
  });

  test("is a view of the request's bytes, not a copy", () => {
    const body = encode('{"payload":[1]}');
    const parsed = parsePublishBody(body);
    expect(parsed.ok && parsed.value.payload?.buffer).toBe(body.buffer);
  });

  test("that is absent differs from one that is null", () => {
    expect(outcome(parsePublishBody(encode('{"type":"a"}')))).toBe(null);
    expect(outcome(parsePublishBody(encode('{"payload":null}')))).toBe("null");
  });

  test("of any JSON comes out as it went in, by every door", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom("", " ", "\t"), (payload, space) => {
        const event = `{"type":"a"${space},"payload":${space}${payload}${space}}`;
        expect(outcome(parsePublishBody(encode(event)))).toBe(payload);
        const batch = encode(`{"events":[${event},${event}]}`);
        expect(outcomes(parseBatchBody(batch, 2))).toEqual([payload, payload]);
        const lines = encode(`${event}\n${event}`);
        expect(outcomes(parseNdjsonBody(lines, 2))).toEqual([payload, payload]);
      }),
      SEED,
    );
  });

  test("may be 128 levels deep by every door, and no deeper", () => {
    const event = (depth: number) => `{"payload":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    const [good, bad] = [event(128), event(129)];
    expect(parsePublishBody(encode(good)).ok).toBe(true);
    expect(outcome(parsePublishBody(encode(bad)))).toBe("too_deep");
    const batch = parseBatchBody(encode(`{"events":[${good},${bad},{}]}`), 3);
    expect(outcomes(batch)).toEqual([expect.any(String), "too_deep", null]);
    const lines = parseNdjsonBody(encode([good, bad, "{}"].join("\n")), 3);
    expect(outcomes(lines)).toEqual([expect.any(String), "too_deep", null]);
  });
});

describe("the other fields", () => {
  test("are decoded, all of them", () => {
    const parsed = parsePublishBody(
      encode('{"type":"a\\u002eb","payload":1,"schema_version":2,"é":[{"a":null}],"variant":[]}'),
    );
    expect(parsed.ok && { ...parsed.value.fields }).toEqual({
      type: "a.b",
      schema_version: 2,
      é: [{ a: null }],
      variant: [],
    });
  });

  test("named after Object's own machinery are fields like any other", () => {
    const parsed = parsePublishBody(encode('{"__proto__":{"polluted":1},"constructor":2}'));
    if (!parsed.ok) throw new Error(parsed.error.reason);
    expect(Object.keys(parsed.value.fields)).toEqual(["__proto__", "constructor"]);
    expect(parsed.value.fields["polluted"]).toBeUndefined();
    expect(parsed.value.fields["toString"]).toBeUndefined();
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test.each([
    ['{"type":"a","type":"b"}', "type", 12],
    ['{"type":"a","\\u0074ype":"a"}', "type", 12],
    ['{"payload":1,"payload":1}', "payload", 13],
    ['{"payload":null,"p\\u0061yload":2}', "payload", 16],
    ['{"__proto__":1,"__proto__":2}', "__proto__", 15],
    ['\ufeff{"a":1,"a":2}', "a", 10],
    ['{"":1,"":2}', "", 6],
  ])("given twice are refused by name: %s", (body, path, offset) => {
    expect(parsePublishBody(encode(body))).toEqual({
      ok: false,
      error: { reason: "duplicate_field", path, offset },
    });
  });

  test("given twice inside the payload or a field are no concern of the envelope", () => {
    expect(parsePublishBody(encode('{"payload":{"a":1,"a":2},"x":{"a":1,"a":2}}')).ok).toBe(true);
  });

  test("may weigh 64 KiB together with their keys; the payload weighs nothing", () => {
    const heavy = (bytes: number) => `{"type":"a","payload":"${"p".repeat(100_000)}","x":"${"x".repeat(bytes - 16)}"}`;
    expect(parsePublishBody(encode(heavy(64 * 1024))).ok).toBe(true);
    expect(outcome(parsePublishBody(encode(heavy(64 * 1024 + 1))))).toBe("fields_too_large");
    const longKey = `{"${"k".repeat(70_000)}":1,"payload":2}`;
    expect(outcome(parsePublishBody(encode(longKey)))).toBe("fields_too_large");
  });

  test("are quoted in an error at no more than 128 characters", () => {
    const key = "k".repeat(1000);
    expect(parsePublishBody(encode(`{"${key}":1,"${key}":2}`))).toMatchObject({
      error: { reason: "duplicate_field", path: "k".repeat(128) },
    });
  });
});

describe("a request that is not an event", () => {
  test.each([
    ["", "invalid_json"],
    ["{", "invalid_json"],
    ['{"type":"a","type":"b"', "invalid_json"],
    ['{"payload":01}', "invalid_json"],
    ['{"payload":1}x', "invalid_json"],
    ["\ufeff\ufeff{}", "invalid_json"],
    [" \ufeff{}", "invalid_json"],
    ["[]", "not_an_object"],
    ["null", "not_an_object"],
    ['"{}"', "not_an_object"],
    ["[".repeat(1024 * 1024), "too_deep"],
  ])("%.20s is refused as %s", (body, reason) => {
    expect(outcome(parsePublishBody(encode(body)))).toBe(reason);
  });

  test("faults are told by their byte in the request, the BOM counted", () => {
    expect(parsePublishBody(encode('\ufeff{"é":x}'))).toMatchObject({ error: { offset: 9 } });
  });

  test("invalid UTF-8 is refused wherever it stands", () => {
    for (const body of [join('{"payload":"', [0xff], '"}'), join("{}", [0xc3]), join([0xfe])]) {
      expect(parsePublishBody(body)).toEqual({ ok: false, error: { reason: "invalid_utf8" } });
      expect(parseBatchBody(body, 1)).toEqual({ ok: false, error: { reason: "invalid_utf8" } });
    }
  });

  test("no bytes make any door throw", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 48 }),
      fc.string({ unit: fc.constantFrom(...'{}[]:,"\\ \n1', '"events"'), maxLength: 12 }).map(encode),
    );
    fc.assert(
      fc.property(bytes, (body) => {
        parsePublishBody(body);
        parseBatchBody(body, 2);
        parseNdjsonBody(body, 2);
      }),
      { ...SEED, numRuns: 1000 },
    );
  });
});

describe("a batch", () => {
  test("answers for each event in its own place", () => {
    const body = encode(
      `\ufeff { "events" : [ {"payload": 1.0 }, 7, [], {"a":1,"a":2}, {"x":"${"x".repeat(70_000)}"}, {} ] } `,
    );
    expect(outcomes(parseBatchBody(body, 6))).toEqual([
      "1.0",
      "not_an_object",
      "not_an_object",
      "duplicate_field",
      "fields_too_large",
      null,
    ]);
  });

  test("tells the fault of one event by its byte in the whole request", () => {
    const parsed = parseBatchBody(encode('\ufeff{"events": [ {}, {"a":1,"a":2} ] }'), 2);
    expect(parsed.ok && parsed.value[1]).toMatchObject({ error: { path: "a", offset: 27 } });
  });

  test.each([
    ["[]", { reason: "not_an_object" }],
    ["{}", { reason: "missing_events", path: "events" }],
    ['{"events":{}}', { reason: "missing_events", path: "events" }],
    ['{"events":null}', { reason: "missing_events", path: "events" }],
    ['{"events":[ ]}', { reason: "no_events", path: "events" }],
    ['{"events":[{},{},{}]}', { reason: "too_many_events", path: "events" }],
    ['{"events":[{}],"more":1}', { reason: "unknown_field", path: "more", offset: 15 }],
    ['{"events":[{}],"ev\\u0065nts":[]}', { reason: "duplicate_field", path: "events", offset: 15 }],
    ['{"events":[{},{"payload":tru}]}', { reason: "invalid_json", offset: 28 }],
    ['{"events":[{}]', { reason: "invalid_json", offset: 14 }],
    [`{"events":[${"[".repeat(20_000)}`, { reason: "too_deep", offset: 10_009 }],
  ])("%.40s is refused whole", (body, error) => {
    expect(parseBatchBody(encode(body), 2)).toEqual({ ok: false, error });
  });
});

describe("NDJSON", () => {
  test("is one event a line, ended by LF or CRLF or the end, blank lines passed over", () => {
    const body = encode('\ufeff\r\n{"payload":1}\n\n \t\r\n {"payload": "a\\nb" }\r\n{"payload":3}');
    expect(outcomes(parseNdjsonBody(body, 3))).toEqual(["1", '"a\\nb"', "3"]);
  });

  test("a bad line is an error in its own place", () => {
    const body = join('{"payload":1}\n{"payload":\n2}\n', [0xff], '\n[]\n{"a":1,"a":2}\n{}\r\n');
    expect(outcomes(parseNdjsonBody(body, 7))).toEqual([
      "1",
      "invalid_json",
      "invalid_json",
      "invalid_utf8",
      "not_an_object",
      "duplicate_field",
      null,
    ]);
  });

  test("tells a line's fault by its byte in the whole request", () => {
    const parsed = parseNdjsonBody(join("{}\n{x}\n", [0xff]), 3);
    expect(parsed.ok && parsed.value.slice(1)).toEqual([
      { ok: false, error: { reason: "invalid_json", offset: 4 } },
      { ok: false, error: { reason: "invalid_utf8", offset: 7 } },
    ]);
  });

  test.each(["", "\ufeff", "\n \r\n\t\n"])("%j holds no events", (body) => {
    expect(parseNdjsonBody(encode(body), 1)).toEqual({ ok: false, error: { reason: "no_events" } });
  });

  test("one line over the limit refuses the request; blank lines do not count", () => {
    expect(parseNdjsonBody(encode("{}\n\n{}\n\n"), 2).ok).toBe(true);
    expect(outcomes(parseNdjsonBody(encode("{}\n{}\nx"), 2))).toBe("too_many_events");
  });
});

describe("variants", () => {
  const variantsOf = (body: string) => {
    const parsed = parsePublishBody(encode(body));
    if (!parsed.ok) return parsed.error;
    return parsed.value.variants?.map(({ fields, payload }) => [{ ...fields }, payload && decode(payload)]);
  };

  test.each(delicatePayloads)("%s is taken byte for byte", (payload) => {
    const variants = `[ {"schema_version":2,"payload":${payload}} ,{ "\\u0070ayload" :\t${payload}\n} ]`;
    for (const body of [`{"variants":${variants},"payload":1}`, `{"payload":1,"\\u0076ariants":${variants}}`]) {
      expect(variantsOf(body)).toEqual([
        [{ schema_version: 2 }, payload],
        [{}, payload],
      ]);
    }
  });

  test("that are absent or null are none, and an empty list is one", () => {
    expect(variantsOf('{"payload":1}')).toBeUndefined();
    expect(variantsOf('{"payload":1,"variants": null }')).toBeUndefined();
    expect(variantsOf('{"payload":1,"variants":[]}')).toEqual([]);
  });

  test("may be as deep as any payload, and no deeper, and let nothing else be deeper", () => {
    const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    const event = (variant: number, payload: number) =>
      `{"payload":${deep(payload)},"variants":[{"schema_version":2,"payload":${deep(variant)}}]}`;
    expect(variantsOf(event(128, 128))).toEqual([[{ schema_version: 2 }, deep(128)]]);
    for (const [variant, payload] of [
      [129, 1],
      [1, 129],
      [128, 129],
    ] as const) {
      expect(variantsOf(event(variant, payload))).toMatchObject({ reason: "too_deep" });
    }
  });

  test.each([
    ['{"variants":{}}', "malformed_variants", "variants"],
    ['{"variants":"[]"}', "malformed_variants", "variants"],
    ['{"variants":[{},1]}', "malformed_variants", "variants.1"],
    ['{"variants":[{},[]]}', "malformed_variants", "variants.1"],
    ['{"variants":[],"variants":[]}', "duplicate_field", "variants"],
    ['{"variants":null,"variants":null}', "duplicate_field", "variants"],
    ['{"variants":[{"payload":1,"p\\u0061yload":1}]}', "duplicate_field", "variants.0.payload"],
    ['{"variants":[{},{"schema_version":1,"schema_version":1}]}', "duplicate_field", "variants.1.schema_version"],
  ])("%s is refused as %s at %s", (body, reason, path) => {
    expect(variantsOf(body)).toMatchObject({ reason, path });
  });

  test("have no more room for their other members than the event has, all together", () => {
    const filler = "x".repeat(20_000);
    const body = (count: number) => `{"variants":[${Array(count).fill(`{"filler":"${filler}"}`).join(",")}]}`;
    expect(variantsOf(body(3))).toHaveLength(3);
    expect(variantsOf(body(4))).toMatchObject({ reason: "fields_too_large" });
  });

  test("of whatever number are known to be too many, and no more are taken apart", () => {
    expect(variantsOf(`{"variants":[${Array(100_000).fill("{}").join(",")}]}`)).toHaveLength(5);
  });
});
