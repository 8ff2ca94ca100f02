import { expect, test } from "vitest";
import { MAX_HOPS, parseHops } from "../../../src/core/hops.ts";

const answer = (header: string | undefined) => {
  const hops = parseHops(header);
  return hops.ok ? hops.value : hops.error;
};

test.each<[string | undefined, number | string]>([
  [undefined, 0],
  ["0", 0],
  ["1", 1],
  [String(MAX_HOPS - 1), MAX_HOPS - 1],
  [`00${MAX_HOPS - 1}`, MAX_HOPS - 1],
  [String(MAX_HOPS), "loop_detected"],
  ["1000000", "loop_detected"],
  ["9".repeat(256), "loop_detected"],
  ["9".repeat(257), "malformed"],
  ["", "malformed"],
  [" 1", "malformed"],
  ["-1", "malformed"],
  ["1.5", "malformed"],
  ["1e1", "malformed"],
  ["0x1", "malformed"],
  ["1, 1", "malformed"],
  ["one", "malformed"],
  ["１", "malformed"],
])("%j hops: %s", (header, expected) => expect(answer(header)).toBe(expected));

test("a ring ends: a relay that hands on one more than it was told reaches the limit", () => {
  let hops: number | string = 0;
  let events = 0;
  while (typeof hops === "number") {
    events++;
    hops = answer(String(hops + 1));
  }
  expect([hops, events]).toEqual(["loop_detected", MAX_HOPS]);
});
