import { Environment } from "@marcbachmann/cel-js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { verdict } from "./support.ts";

/**
 * The part of the language that people use, beside a reference that says in plain JavaScript what it means: no compiling, no
 * steps, no library. What an expression comes to is a value, or one of these.
 */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
class Absent {
  readonly isAbsent = true;
}
class Wrong {
  readonly isAbsent = false;
}
type Outcome = Json | Absent | Wrong;
type Scope = Record<string, Json>;
interface Expression {
  source: string;
  of(scope: Scope): Outcome;
}

const isBad = (value: unknown): value is Absent | Wrong => value instanceof Absent || value instanceof Wrong;
const isObject = (value: unknown): value is { [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isBad(value);
const same = (a: Json, b: Json): boolean => {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => same(one, b[i]!));
  if (isObject(a) && isObject(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key]!, b[key]!));
  }
  return a === b;
};

const NAMES = ["a", "b", "c"];
const scalars = fc.constantFrom<Json>(0, 1, 2, -3, "x", "xy", "", true, false, null);
const { payload: payloads } = fc.letrec<{ payload: Json; value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "medium" },
    { arbitrary: scalars, weight: 4 },
    { arbitrary: fc.array(tie("value") as fc.Arbitrary<Json>, { maxLength: 3 }), weight: 1 },
    { arbitrary: tie("payload") as fc.Arbitrary<Json>, weight: 1 },
  ),
  payload: fc.dictionary(fc.constantFrom(...NAMES), tie("value") as fc.Arbitrary<Json>, { maxKeys: 3 }),
}));

/** A way into the payload, or into a variable. */
const path = (root: string) =>
  fc
    .array(fc.constantFrom(...NAMES), { minLength: root === "payload" ? 1 : 0, maxLength: 2 })
    .map((names): Expression => ({
      source: [root, ...names].join("."),
      of: (scope) =>
        names.reduce<Outcome>((value, name) => {
          if (isBad(value)) return value;
          return isObject(value) && name in value ? value[name]! : new Absent();
        }, scope[root]!),
    }));
const literal = scalars.map((value): Expression => ({ source: JSON.stringify(value), of: () => value }));

function comparison(roots: string[]): fc.Arbitrary<Expression> {
  const operand = fc.oneof(...roots.map(path));
  const operators = fc.constantFrom("==", "!=", "<", "<=", ">", ">=");
  return fc.tuple(operand, operators, fc.oneof(literal, operand)).map(([left, operator, right]) => ({
    source: `${left.source} ${operator} ${right.source}`,
    of(scope) {
      const [a, b] = [left.of(scope), right.of(scope)];
      if (isBad(a)) return a;
      if (isBad(b)) return b;
      if (operator === "==") return same(a, b);
      if (operator === "!=") return !same(a, b);
      const kinds = ["number", "string", "boolean"];
      if (typeof a !== typeof b || !kinds.includes(typeof a)) return new Wrong();
      const [x, y] = [a, b] as unknown as [number, number];
      return operator === "<" ? x < y : operator === "<=" ? x <= y : operator === ">" ? x > y : x >= y;
    },
  }));
}

function other(roots: string[]): fc.Arbitrary<Expression> {
  const operand = fc.oneof(...roots.map(path));
  const lists = fc.array(scalars, { maxLength: 3 });
  return fc.oneof(
    fc.tuple(operand, lists).map(([value, list]): Expression => ({
      source: `${value.source} in ${JSON.stringify(list)}`,
      of(scope) {
        const found = value.of(scope);
        return isBad(found) ? found : list.some((element) => same(found, element));
      },
    })),
    fc
      .tuple(operand, fc.constantFrom("startsWith", "endsWith", "contains"), fc.constantFrom("x", "y", ""))
      .map(([value, method, part]): Expression => ({
        source: `${value.source}.${method}("${part}")`,
        of(scope) {
          const text = value.of(scope);
          if (isBad(text)) return text;
          if (typeof text !== "string") return new Wrong();
          return method === "startsWith"
            ? text.startsWith(part)
            : method === "endsWith"
              ? text.endsWith(part)
              : text.includes(part);
        },
      })),
    fc.tuple(operand, fc.integer({ min: 0, max: 3 })).map(([value, n]): Expression => ({
      source: `size(${value.source}) == ${n}`,
      of(scope) {
        const found = value.of(scope);
        if (isBad(found)) return found;
        if (typeof found === "string" || Array.isArray(found)) return found.length === n;
        return isObject(found) ? Object.keys(found).length === n : new Wrong();
      },
    })),
  );
}

/** `has` of a name in something that is there: of a longer way the library and we say different things. */
const has = fc.constantFrom(...NAMES).map((name): Expression => ({
  source: `has(payload.${name})`,
  of: (scope) => isObject(scope["payload"]!) && name in scope["payload"]!,
}));

function combine(roots: string[], depth: number): fc.Arbitrary<Expression> {
  const leaf = fc.oneof({ arbitrary: comparison(roots), weight: 4 }, { arbitrary: other(roots), weight: 2 }, has);
  if (depth === 0) return leaf;
  const inner = combine(roots, depth - 1);
  const logical = fc.tuple(inner, fc.constantFrom("&&", "||"), inner).map(([left, operator, right]): Expression => ({
    source: `(${left.source} ${operator} ${right.source})`,
    of(scope) {
      const [a, b] = [left.of(scope), right.of(scope)];
      const decides = operator === "||";
      if (a === decides || b === decides) return decides;
      return isBad(a) ? a : b;
    },
  }));
  const negation = inner.map(({ source, of }): Expression => ({
    source: `!(${source})`,
    of(scope) {
      const value = of(scope);
      return isBad(value) ? value : !value;
    },
  }));
  const choice = fc.tuple(inner, inner, inner).map(([test, yes, no]): Expression => ({
    source: `(${test.source} ? ${yes.source} : ${no.source})`,
    of(scope) {
      const value = test.of(scope);
      return isBad(value) ? value : value ? yes.of(scope) : no.of(scope);
    },
  }));
  const variable = `v${depth}`;
  const loop = fc
    .tuple(fc.oneof(...roots.map(path)), fc.constantFrom("all", "exists"), combine([...roots, variable], depth - 1))
    .map(([list, macro, body]): Expression => ({
      source: `${list.source}.${macro}(${variable}, ${body.source})`,
      of(scope) {
        const items = list.of(scope);
        if (isBad(items)) return items;
        if (!Array.isArray(items) && !isObject(items)) return new Wrong();
        const values = (Array.isArray(items) ? items : Object.keys(items)).map((item) =>
          body.of({ ...scope, [variable]: item }),
        );
        const decides = macro === "exists";
        if (values.includes(decides)) return decides;
        return values.find(isBad) ?? !decides;
      },
    }));
  return fc.oneof({ arbitrary: leaf, weight: 2 }, { arbitrary: logical, weight: 4 }, negation, choice, loop);
}

const expressions = combine(["payload"], 3);
const SEED = { seed: 20_305, numRuns: 5_000 };

/** A plain comparison of a kind with another that can be seen to be wrong is refused, and so never met. */
function isSavable(source: string): boolean {
  return environment.check(source).valid;
}

const environment = new Environment({ homogeneousAggregateLiterals: false }).registerVariable("payload", "dyn");

test("a filter says what plain JavaScript says of the same expression", () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(expressions, payloads, ({ source, of }, payload) => {
      fc.pre(isSavable(source));
      const value = of({ payload });
      const expected =
        value === true ? "match" : value === false ? "no match" : value instanceof Absent ? "absent" : "type_mismatch";
      seen.set(expected, (seen.get(expected) ?? 0) + 1);
      expect(verdict(source, JSON.stringify(payload))).toBe(expected);
    }),
    SEED,
  );
  // All four were met, and often.
  for (const word of ["match", "no match", "absent", "type_mismatch"]) expect(seen.get(word)).toBeGreaterThan(200);
});

/** As the library wants its values. */
function forLibrary(value: Json): unknown {
  if (typeof value === "number") return BigInt(value);
  if (Array.isArray(value)) return value.map(forLibrary);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, forLibrary(one)]));
  return value;
}

test("a filter matches where the library's own evaluator says true, and does not where it says false", () => {
  let decided = 0;
  fc.assert(
    fc.property(expressions, payloads, ({ source }, payload) => {
      fc.pre(isSavable(source));
      let theirs: unknown;
      try {
        theirs = environment.evaluate(source, { payload: forLibrary(payload) });
      } catch {
        // Whatever it throws, an absent key among it, is no match.
        expect(["absent", "type_mismatch"]).toContain(verdict(source, JSON.stringify(payload)));
        return;
      }
      decided++;
      expect(verdict(source, JSON.stringify(payload))).toBe(theirs === true ? "match" : "no match");
    }),
    { ...SEED, seed: 20_306 },
  );
  expect(decided).toBeGreaterThan(500);
});
