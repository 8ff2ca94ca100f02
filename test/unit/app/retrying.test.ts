import { expect, test } from "vitest";
import { retrying } from "../../../src/app/retrying.ts";

/** Work that fails the first `failures` times; each failure and each pause leaves its trace. */
function scene(failures: number) {
  const trace: (string | number)[] = [];
  let tries = 0;
  const work = async () => {
    tries++;
    trace.push(`try ${tries}`);
    if (tries <= failures) throw new Error(`refusal ${tries}`);
    return `done at ${tries}`;
  };
  const sleep = async (ms: number) => void trace.push(ms);
  return { trace, run: () => retrying(sleep, work) };
}

test("work that succeeds is done once and waits for nothing", async () => {
  const { trace, run } = scene(0);
  expect(await run()).toBe("done at 1");
  expect(trace).toEqual(["try 1"]);
});

test("work that fails is tried again after a pause, the second longer than the first", async () => {
  const { trace, run } = scene(2);
  expect(await run()).toBe("done at 3");
  expect(trace).toEqual(["try 1", 50, "try 2", 250, "try 3"]);
});

test("work that fails three times fails with the last reason and is not tried again", async () => {
  const { trace, run } = scene(9);
  await expect(run()).rejects.toThrow("refusal 3");
  expect(trace).toEqual(["try 1", 50, "try 2", 250, "try 3"]);
});
