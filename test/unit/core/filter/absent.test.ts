import { describe, expect, test } from "vitest";
import { evaluate, verdict } from "./support.ts";

describe("what is not there makes an event not match, and is no failure", () => {
  test.each([
    ["payload.a == 1", "{}"],
    ["payload.a != 1", "{}"],
    ["!(payload.a == 1)", "{}"],
    ["payload.a == null", "{}"],
    ["payload.a == payload.b", "{}"],
    ["payload.a", "{}"],
    ["payload.a.b == 1", '{"a":null}'],
    ["payload.a.b == 1", '{"a":"text"}'],
    ["payload.a.b == 1", '{"a":[]}'],
    ["payload.a.b == 1", '{"a":1}'],
    ["payload.a[0] == 1", '{"a":[]}'],
    ["payload.a[-1] == 1", '{"a":[1]}'],
    ["payload.a[0.5] == 1", '{"a":[1]}'],
    ['payload.a["0"] == 1', '{"a":[1]}'],
    ["payload.a[0] == 1", '{"a":{"0":1}}'],
    ["payload.a[payload.b] == 1", '{"a":[1]}'],
    ["payload[payload.a] == 1", '{"a":null}'],
    ["payload[9007199254740993] == 1", "[1]"],
    ["size(payload.a) == 0", "{}"],
    ['payload.a.startsWith("")', "{}"],
    ['"x".contains(payload.a)', "{}"],
    ["payload.a in [1]", "{}"],
    ["1 in payload.a", "{}"],
    ["[payload.a] == []", "{}"],
    ['{"k": payload.a} == {}', "{}"],
    ["{payload.a: 1} == {}", "{}"],
    ["payload.a.all(x, true)", "{}"],
    ["payload.a ? true : true", "{}"],
    ["int(payload.a) == 1", "{}"],
    ["-payload.a == 1", "{}"],
    ["payload.toString == 1", "{}"],
    ["payload.length == 1", "[1]"],
    ["event.ordering_key == 'k'", "{}"],
  ])("%s of %s", (filter, payload) => {
    expect(evaluate(filter, payload)).toMatchObject({ outcome: "no_match", reason: "absent" });
  });
});

test("one side that decides is enough, on either side of what is absent or wrong", () => {
  const wrong = ["payload.missing == 1", "payload.text > 1"];
  for (const bad of wrong) {
    expect(verdict(`${bad} || true`, '{"text":"x"}')).toBe("match");
    expect(verdict(`true || ${bad}`, '{"text":"x"}')).toBe("match");
    expect(verdict(`${bad} && false`, '{"text":"x"}')).toBe("no match");
    expect(verdict(`false && ${bad}`, '{"text":"x"}')).toBe("no match");
  }
  expect(verdict("payload.missing == 1 || false", "{}")).toBe("absent");
  expect(verdict("payload.missing == 1 && true", "{}")).toBe("absent");
  expect(verdict("false || payload.missing == 1 || payload.a == 1", '{"a":1}')).toBe("match");
});

test("of several that are wrong the first stands", () => {
  expect(verdict("payload.missing == 1 && payload.text > 1", '{"text":"x"}')).toBe("absent");
  expect(verdict("payload.text > 1 && payload.missing == 1", '{"text":"x"}')).toBe("type_mismatch");
});

test("of several elements that are wrong the first stands too", () => {
  for (const macro of ["all(x, x.a > 0)", "exists(x, x.a > 9)"]) {
    expect(verdict(`payload.l.${macro}`, '{"l":[{"a":1},{},{"a":"x"}]}')).toBe("absent");
    expect(verdict(`payload.l.${macro}`, '{"l":[{"a":1},{"a":"x"},{}]}')).toBe("type_mismatch");
  }
});

test("all and exists need one element that decides; the other macros need every one", () => {
  const list = '{"l":[{"a":1},{},{"a":3}]}';
  expect(verdict("payload.l.exists(x, x.a == 3)", list)).toBe("match");
  expect(verdict("payload.l.exists(x, x.a == 2)", list)).toBe("absent");
  expect(verdict("payload.l.all(x, x.a == 1)", list)).toBe("no match");
  expect(verdict("payload.l.all(x, x.a < 9)", list)).toBe("absent");
  for (const macro of ["exists_one(x, x.a == 1)", "filter(x, x.a == 1) == []", "map(x, x.a) == []"]) {
    expect(verdict(`payload.l.${macro}`, list)).toBe("absent");
  }
  expect(verdict("payload.l.exists(x, has(x.a) && x.a == 2)", list)).toBe("no match");
});

test("has is false wherever on the way something is missing, and says so of nothing else", () => {
  expect(verdict("has(payload.a.b.c)", "{}")).toBe("no match");
  expect(verdict("has(payload.a.b.c)", '{"a":{"b":5}}')).toBe("no match");
  expect(verdict("has(payload.a)", '{"a":null}')).toBe("match");
});

test("a payload that is not JSON is absent as a whole, and the event is there", () => {
  expect(verdict("payload == null", null)).toBe("absent");
  expect(verdict("payload.a == 1", null)).toBe("absent");
  expect(verdict("has(payload.a)", null)).toBe("no match");
  expect(verdict('event.type == "order.paid"', null)).toBe("match");
});

test("the position is of the step that is missing, or of what does not go together", () => {
  expect(evaluate("true && payload.a.b == 1", '{"a":{}}').position).toBe(18);
  expect(evaluate('true && payload.a.startsWith("x")', '{"a":1}').position).toBe(18);
  expect(evaluate("payload.a == 1", '{"a":1}').position).toBeNull();
});
