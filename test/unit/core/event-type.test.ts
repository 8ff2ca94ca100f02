import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  compilePattern,
  isEventType,
  OPERATIONAL_PATTERNS,
  parseEventTypePattern,
  patternsMatching,
} from "../../../src/core/event-type.ts";
import { TEST_EVENT_TYPE } from "../../../src/core/test-event.ts";

const seed = { seed: 1 };
const segment = fc.stringMatching(/^[a-bA_-]{1,3}$/);
const eventType = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => segments.join("."));
const pattern = fc
  .array(fc.oneof(segment, fc.constant("*")), { minLength: 1, maxLength: 5 })
  .map((segments) => segments.join("."));

describe("event types", () => {
  test.each([
    "a",
    "order.created",
    "Order_2-x.0",
    "hooklane",
    "hooklanes.x",
    "Hooklane.x",
    "x.hooklane.y",
    "a".repeat(128),
  ])("%j is a type", (text) => {
    expect(isEventType(text)).toBe(true);
  });

  test.each([
    "",
    ".",
    "a.",
    ".a",
    "a..b",
    "a b",
    "a\n",
    "a/b",
    "é",
    "*",
    "a.*",
    "hooklane.",
    "hooklane.test",
    "a".repeat(129),
  ])("%j is no type", (text) => {
    expect(isEventType(text)).toBe(false);
  });
});

describe("event type patterns", () => {
  test("a type and a pattern of its shape are patterns", () => {
    fc.assert(
      fc.property(fc.oneof(eventType, pattern), (text) => {
        expect(parseEventTypePattern(text)).toEqual({ ok: true, value: text });
      }),
      seed,
    );
  });

  test.each(["", ".", "*.", ".*", "**", "a*", "order.creat*", "a..*", "a b", "*\n", "*".repeat(129), "?"])(
    "%j is no pattern",
    (text) => {
      expect(parseEventTypePattern(text)).toEqual({ ok: false, error: "malformed_pattern" });
    },
  );

  test.each([
    "hooklane.*",
    "hooklane.*.*",
    "hooklane.endpoint.*",
    "hooklane.*.dead_letter",
    "hooklane.delivery.dead_letter",
    "hooklane.endpoint.disabled",
    "hooklane.endpoint.failing",
  ])("%s asks for operational events", (text) => {
    expect(parseEventTypePattern(text)).toEqual({ ok: true, value: text });
  });

  test.each(["hooklane.test", "hooklane.endpoint.enabled", "hooklane.*.*.*", "hooklane.order.*", "hooklane.delivery"])(
    "%s matches none of them, and is refused",
    (text) => {
      expect(parseEventTypePattern(text)).toEqual({ ok: false, error: "no_such_operational_event" });
    },
  );

  test("the patterns that match a type are exactly those that patternsMatching names", () => {
    const segment = fc.constantFrom("a", "b", "*");
    const anyPattern = fc.array(segment, { minLength: 0, maxLength: 4 }).map((tail) => ["a", ...tail].join("."));
    const type = fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(type, anyPattern, (tail, text) => {
        const named = ["a", ...tail].join(".");
        expect(patternsMatching(named).includes(text)).toBe(compilePattern(text)(named));
      }),
      { ...seed, numRuns: 2_000 },
    );
  });

  test("a test send is no operational event that a pattern could ask for", () => {
    expect(OPERATIONAL_PATTERNS.has(TEST_EVENT_TYPE)).toBe(false);
  });

  test.each([
    ["*", "a", true],
    ["*", "a.b.c", true],
    ["order.created", "order.created", true],
    ["order.created", "order.created.v2", false],
    ["order.created", "Order.created", false],
    ["order.*", "order.created", true],
    ["order.*", "order.line.added", true],
    ["order.*", "order", false],
    ["order.*", "orders.created", false],
    ["*.created", "order.created", true],
    ["*.created", "order.line.created", false],
    ["*.created", "created", false],
    ["order.*.added", "order.line.added", true],
    ["order.*.added", "order.line.item.added", false],
    ["*.*", "a", false],
    ["*.*", "a.b", true],
    ["*.*", "a.b.c", true],
    ["*", "hooklane.endpoint.disabled", false],
    ["*.*", "hooklane.endpoint.disabled", false],
    ["*.endpoint.disabled", "hooklane.endpoint.disabled", false],
    ["*", "hooklane", true],
    ["hooklane.*", "hooklane.endpoint.disabled", true],
    ["hooklane.*.disabled", "hooklane.endpoint.disabled", true],
    ["hooklane.endpoint.disabled", "hooklane.endpoint.disabled", true],
  ])("%s against %s is %s", (text, type, expected) => {
    expect(compilePattern(text)(type)).toBe(expected);
  });

  test("a pattern without a star matches its own type and no other", () => {
    fc.assert(
      fc.property(eventType, eventType, (a, b) => {
        expect(compilePattern(a)(a)).toBe(true);
        expect(compilePattern(a)(b)).toBe(a === b);
      }),
      seed,
    );
  });

  test("turning segments of a type into stars never loses the type", () => {
    fc.assert(
      fc.property(eventType, fc.infiniteStream(fc.boolean()), (type, coins) => {
        const starred = type.split(".").map((part) => (coins.next().value === true ? "*" : part));
        expect(compilePattern(starred.join("."))(type)).toBe(true);
      }),
      seed,
    );
  });

  test("a pattern matches as the regular expression it stands for", () => {
    fc.assert(
      fc.property(pattern, eventType, (text, type) => {
        const source = text
          .replace(/\*$/, ".+")
          .replaceAll("*", "[^.]+")
          .replace(/\.(?!\+)/g, "\\.");
        const expected = text === "*" || new RegExp(`^${source}$`).test(type);
        expect(compilePattern(text)(type)).toBe(expected);
      }),
      { ...seed, numRuns: 1000 },
    );
  });
});
