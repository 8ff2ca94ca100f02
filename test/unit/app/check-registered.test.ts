import { expect, test } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import { checkRegistered } from "../../../src/app/publish/check-registered.ts";
import { collectTypes, type RegisteredVersion } from "../../../src/core/registered-types.ts";

const version = (over: Partial<RegisteredVersion>): RegisteredVersion => ({
  name: "order.created",
  requiredScope: null,
  schemaVersion: 1,
  jsonSchema: null,
  isRetired: false,
  ...over,
});

function refusal(
  versions: RegisteredVersion[],
  fields: object,
  payload: string,
  requiresRegistration = false,
  budget = { stepsLeft: 1_000 },
) {
  const config = { types: collectTypes(versions), requiresRegistration };
  const item = { payload: new TextEncoder().encode(payload), payloadIsJson: true, variants: [] };
  try {
    checkRegistered(config, { type: "order.created", schemaVersion: 1, ...item, ...fields }, budget);
    return null;
  } catch (error) {
    if (error instanceof AppError) return { code: error.code, paths: error.errors?.map(({ path }) => path) };
    throw error;
  }
}

const STRICT = version({ jsonSchema: JSON.stringify({ type: "object", required: ["id"] }) });

test("other versions and other types are not held to a version's schema", () => {
  expect(refusal([STRICT], {}, "{}")).toEqual({ code: "validation_failed", paths: ["payload.id"] });
  expect(refusal([STRICT], {}, "[]")).toEqual({ code: "validation_failed", paths: ["payload"] });
  expect(refusal([STRICT], { schemaVersion: 2 }, "{}")).toBeNull();
  expect(refusal([STRICT], { type: "order.paid" }, "{}")).toBeNull();
});

test("a path into a payload is cut where a problem's would be too long", () => {
  const names = Array.from({ length: 20 }, (_, n) => `name-${n}-${"x".repeat(40)}`);
  const nested = (depth: number): object =>
    depth === 20 ? { type: "string" } : { properties: { [names[depth]!]: nested(depth + 1) } };
  const payload = names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), 1);
  const found = refusal([version({ jsonSchema: JSON.stringify(nested(0)) })], {}, JSON.stringify(payload));
  expect(found!.paths![0]).toHaveLength(128);
});

test("a check that would take too much work refuses the payload as a whole", () => {
  const endless = version({ jsonSchema: JSON.stringify({ $ref: "#" }) });
  expect(refusal([endless], {}, "1")).toEqual({ code: "validation_failed", paths: ["payload"] });
});

test("checks of one request take from one budget: the one that ends it is made, those after it are refused", () => {
  const budget = { stepsLeft: 60_000 };
  const endless = version({
    jsonSchema: JSON.stringify({ items: { allOf: Array.from({ length: 40 }, () => ({ allOf: [true, true] })) } }),
  });
  const payload = JSON.stringify(Array(300).fill(1));
  expect(refusal([endless], {}, payload, false, budget)).toBeNull();
  expect(budget.stepsLeft).toBeGreaterThan(0);
  expect(refusal([endless], {}, payload, false, budget)).toBeNull();
  expect(refusal([endless], {}, payload, false, budget)).toEqual({ code: "fan_out_too_large", paths: undefined });
  expect(refusal([version({})], {}, payload, false, budget)).toBeNull();
});

test("what is not registered is refused where the tenant asks for that: by its type, or by its version", () => {
  const code = "event_type_not_registered";
  expect(refusal([], {}, "1", true)).toEqual({ code, paths: ["type"] });
  expect(refusal([version({})], { schemaVersion: 2 }, "1", true)).toEqual({ code, paths: ["schema_version"] });
  expect(refusal([version({ schemaVersion: 2 })], { schemaVersion: 2 }, "1", true)).toBeNull();
});

test("each variant is held to its own version's schema, told by its place in the request", () => {
  const variants = ["{}", '{"id":1}'].map((text, n) => ({
    index: 1 - n,
    schemaVersion: 2 + n,
    payload: new TextEncoder().encode(text),
  }));
  const versions = [STRICT, { ...STRICT, schemaVersion: 2 }, { ...STRICT, schemaVersion: 3 }];
  const fits = '{"id":1}';
  expect(refusal(versions, { variants }, fits)).toEqual({
    code: "validation_failed",
    paths: ["variants.1.payload.id"],
  });
  expect(refusal(versions, { variants: variants.slice(1) }, fits)).toBeNull();
  expect(refusal(versions.slice(0, 2), { variants: variants.slice(1) }, fits, true)).toEqual({
    code: "event_type_not_registered",
    paths: ["variants.0.schema_version"],
  });
});

test("a schema is compiled once, when a payload first needs it", () => {
  const types = collectTypes([
    version({ jsonSchema: "not even JSON" }),
    version({ schemaVersion: 2, jsonSchema: "{}" }),
  ]);
  const [broken, whole] = [1, 2].map((n) => types.get("order.created")!.versions.get(n)!);
  expect(whole!.schema()).toBe(whole!.schema());
  expect(() => broken!.schema()).toThrow();
});
