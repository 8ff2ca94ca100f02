import { expect, test } from "vitest";
import { compileFilter } from "../../../../src/core/filter/filter.ts";
import { createFilterCache } from "../../../../src/core/filter/filter-cache.ts";

function counted(maxNodes: number) {
  const compiled: string[] = [];
  const cache = createFilterCache(maxNodes, (source) => (compiled.push(source), compileFilter(source)));
  return { cache, compiled };
}

test("a source is compiled once, one that does not compile too", () => {
  const { cache, compiled } = counted(100);
  const first = cache("payload.a == 1");
  expect(cache("payload.a == 1")).toBe(first);
  expect(cache("payload.(")).toBeNull();
  expect(cache("payload.(")).toBeNull();
  expect(compiled).toEqual(["payload.a == 1", "payload.("]);
});

test("what is remembered never has more nodes than it may, however many sources there are", () => {
  const { cache, compiled } = counted(40);
  // Four nodes each: ten are remembered, and the eleventh begins anew.
  const ask = (n: number) => cache(`payload.a == ${n}`);
  for (let n = 0; n < 10; n++) ask(n);
  for (let n = 0; n < 10; n++) ask(n);
  expect(compiled).toHaveLength(10);
  ask(10);
  ask(10);
  expect(compiled).toHaveLength(11);
  ask(0);
  expect(compiled).toHaveLength(12);
});
