import { expect, test } from "vitest";
import { runHistory } from "./support/history.ts";

test("the same seed makes the same history, whatever was run before it", async () => {
  const first = new Map(await runAll([11, 12, 13, 14]));
  const second = new Map(await runAll([14, 13, 12, 11]));
  for (const seed of first.keys()) expect(second.get(seed), `seed ${seed}`).toBe(first.get(seed));
  expect(new Set(first.values()).size).toBe(4);
});

async function runAll(seeds: number[]): Promise<[number, string][]> {
  const digests: [number, string][] = [];
  for (const seed of seeds) digests.push([seed, (await runHistory(seed)).digest]);
  return digests;
}
