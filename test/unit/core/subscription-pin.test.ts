import { expect, test } from "vitest";
import { defaultPin, isVersionRetired } from "../../../src/core/subscription-pin.ts";

const type = (versions: Record<number, number | null>) => ({
  name: "order.paid",
  requiredScope: null,
  createdAt: 1,
  versions: Object.entries(versions).map(([schemaVersion, retiredAt]) => ({
    schemaVersion: Number(schemaVersion),
    jsonSchema: null,
    retiredAt,
    createdAt: 1,
  })),
});

test("a subscription that says nothing of a version asks for its type's newest that lives, 1 where none is registered", () => {
  expect(defaultPin("order.paid", null)).toBe(1);
  expect(defaultPin("order.paid", type({ 3: null, 10: null, 9: null }))).toBe(10);
  expect(defaultPin("order.paid", type({ 3: null, 4: 9 }))).toBe(3);
  expect(defaultPin("order.paid", type({ 3: 8, 4: 9 }))).toBe("no_live_version");
});

test("one with a wildcard asks for the newest that an event carries", () => {
  for (const pattern of ["*", "order.*", "*.paid"]) expect(defaultPin(pattern, null)).toBeNull();
});

test("a pin is retired when just that version of its type is", () => {
  expect(isVersionRetired(type({ 3: 9, 4: null }), 3)).toBe(true);
  expect(isVersionRetired(type({ 3: 9, 4: null }), 4)).toBe(false);
  expect(isVersionRetired(type({ 3: 9 }), 5)).toBe(false);
  expect(isVersionRetired(type({ 3: 9 }), null)).toBe(false);
  expect(isVersionRetired(null, 3)).toBe(false);
});
