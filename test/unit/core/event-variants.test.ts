import { expect, test } from "vitest";
import {
  decodeVariants,
  encodeVariants,
  payloadOfVersion,
  storedSize,
  versionsOf,
} from "../../../src/core/event-variants.ts";

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
  expect(versionsOf(event)).toEqual([3, 2, 4, 5]);
});

test("variants are stored and read as they are, none as null", () => {
  expect(decodeVariants(encodeVariants(variants))).toEqual(variants);
  expect(encodeVariants([])).toBeNull();
  expect(decodeVariants(null)).toEqual([]);
});
