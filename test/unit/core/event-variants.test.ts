import { expect, test } from "vitest";
import { decodeVariants, encodeVariants, payloadOfVersion, storedSize } from "../../../src/core/event-variants.ts";
import { defaultPin, isPinRetired } from "../../../src/core/subscription-pin.ts";

const variants = [
  { schemaVersion: 2, payloadSize: 0, payloadSha256: "b" },
  { schemaVersion: 4, payloadSize: 7, payloadSha256: "c" },
  { schemaVersion: 5, payloadSize: 1, payloadSha256: "d" },
];
const event = {
  schemaVersion: 3,
  payloadRef: "30d/ten_1/2026-12-01/evt_1#100",
  payloadSize: 10,
  payloadSha256: "a",
  variants,
};

test("the versions of an event lie one behind the other, its own first", () => {
  const at = (offset: number) => `30d/ten_1/2026-12-01/evt_1#${offset}`;
  expect(payloadOfVersion(event, 3)).toEqual({ payloadRef: at(100), payloadSize: 10, payloadSha256: "a" });
  expect(payloadOfVersion(event, 2)).toEqual({ payloadRef: at(110), payloadSize: 0, payloadSha256: "b" });
  expect(payloadOfVersion(event, 4)).toEqual({ payloadRef: at(110), payloadSize: 7, payloadSha256: "c" });
  expect(payloadOfVersion(event, 5)).toEqual({ payloadRef: at(117), payloadSize: 1, payloadSha256: "d" });
  expect(payloadOfVersion(event, 1)).toBeNull();
  expect(storedSize(event)).toBe(18);
});

test("variants are stored and read as they are, none as null", () => {
  expect(decodeVariants(encodeVariants(variants))).toEqual(variants);
  expect(encodeVariants([])).toBeNull();
  expect(decodeVariants(null)).toEqual([]);
});

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
  expect(isPinRetired({ schemaVersion: 3 }, type({ 3: 9, 4: null }))).toBe(true);
  expect(isPinRetired({ schemaVersion: 4 }, type({ 3: 9, 4: null }))).toBe(false);
  expect(isPinRetired({ schemaVersion: 5 }, type({ 3: 9 }))).toBe(false);
  expect(isPinRetired({ schemaVersion: null }, type({ 3: 9 }))).toBe(false);
  expect(isPinRetired({ schemaVersion: 3 }, null)).toBe(false);
});
