import { expect, test } from "vitest";
import { zeroPayload } from "../../../src/app/event/zero-payload.ts";

/** A store that answers in turn, and what was waited between. */
function scene(answers: (boolean | Error)[]) {
  const pauses: number[] = [];
  const asked: [string, number][] = [];
  const deps = {
    random: () => 0.5,
    sleep: async (ms: number) => void pauses.push(ms),
    async zeroPayload(ref: string, size: number) {
      asked.push([ref, size]);
      const answer = answers.shift() ?? true;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  return { pauses, asked, run: () => zeroPayload(deps, "30d/ten_1/o#3", 7) };
}

test("once confirmed it is not done again", async () => {
  const { asked, pauses, run } = scene([true]);
  await run();
  expect([asked, pauses]).toEqual([[["30d/ten_1/o#3", 7]], []]);
});

test("it is tried again after another writer and after a fault, waiting longer each time", async () => {
  const { asked, pauses, run } = scene([false, new Error("away"), false, true]);
  await run();
  expect(asked).toHaveLength(4);
  expect(pauses).toEqual([50, 300, 1_000]);
});

test("what is never confirmed throws the last fault", async () => {
  const { asked, pauses, run } = scene([false, false, false, false, false, new Error("away")]);
  await expect(run()).rejects.toThrow("away");
  expect(asked).toHaveLength(6);
  expect(pauses).toEqual([50, 300, 1_000, 2_000, 4_000]);
});
