import fc from "fast-check";
import { expect, test } from "vitest";
import { answerRuns, lastAnswerRun, type ComparedAttempt } from "../../../src/core/same-answer.ts";

const answer = (statusCode: number, responseBodySha256: string | null = "aa") => ({
  statusCode,
  responseBodySha256,
  errorClass: statusCode < 300 ? null : "http_4xx",
  outcomeClass: statusCode < 300 ? "success" : "transient",
});
const nothing = (errorClass: string) => ({
  statusCode: null,
  responseBodySha256: null,
  errorClass,
  outcomeClass: "unreachable",
});
const open = { statusCode: null, responseBodySha256: null, errorClass: null, outcomeClass: null };
const numbered = (attempts: Omit<ComparedAttempt, "attemptNumber">[]): ComparedAttempt[] =>
  attempts.map((attempt, i) => ({ ...attempt, attemptNumber: i + 1 }));
const countsOf = (...attempts: Omit<ComparedAttempt, "attemptNumber">[]) =>
  answerRuns(numbered(attempts)).map((run) => run?.count ?? null);

test("the same status with the same body counts on, another of either begins anew", () => {
  expect(countsOf(answer(404), answer(404), answer(404))).toEqual([1, 2, 3]);
  expect(countsOf(answer(404), answer(404, "bb"), answer(404, "bb"), answer(403, "bb"))).toEqual([1, 1, 2, 1]);
  expect(countsOf(answer(404, null), answer(404, null))).toEqual([1, 2]);
});

test("what is ours or still open neither counts nor interrupts; no answer does", () => {
  expect(countsOf(answer(404), nothing("abandoned"), nothing("internal"), answer(404))).toEqual([1, null, null, 2]);
  expect(countsOf(answer(404), nothing("timeout"), answer(404))).toEqual([1, null, 1]);
  expect(countsOf(nothing("timeout"), nothing("timeout"), open)).toEqual([null, null, null]);
});

test("the last run is that of the last attempt that says something", () => {
  expect(lastAnswerRun([])).toBe(null);
  expect(lastAnswerRun(numbered([answer(404), nothing("timeout")]))).toBe(null);
  expect(
    lastAnswerRun(numbered([answer(500), answer(404), nothing("internal"), answer(404), nothing("abandoned"), open])),
  ).toEqual({ count: 2, statusCode: 404, responseBodySha256: "aa", firstAttemptNumber: 2, lastAttemptNumber: 4 });
});

test("a run counts exactly the answers between its first and last attempt, which are all the same", () => {
  const some = fc.oneof(
    fc.constantFrom(answer(404), answer(404, "bb"), answer(500), answer(500, null)),
    fc.constantFrom(nothing("timeout"), nothing("abandoned"), nothing("internal"), open),
  );
  fc.assert(
    fc.property(fc.array(some, { maxLength: 30 }), (given) => {
      const attempts = numbered(given);
      answerRuns(attempts).forEach((run, i) => {
        if (run === null) return;
        const between = attempts.slice(run.firstAttemptNumber - 1, i + 1);
        const answered = between.filter(({ statusCode }) => statusCode !== null);
        expect(answered.length).toBe(run.count);
        expect(between.some(({ errorClass }) => errorClass === "timeout")).toBe(false);
        for (const one of answered) {
          expect([one.statusCode, one.responseBodySha256]).toEqual([run.statusCode, run.responseBodySha256]);
        }
        expect(run.lastAttemptNumber).toBe(i + 1);
      });
    }),
  );
});
