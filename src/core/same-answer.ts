/** What is compared of an attempt. */
export interface ComparedAttempt {
  attemptNumber: number;
  statusCode: number | null;
  errorClass: string | null;
  /** Null while it is open. */
  outcomeClass: string | null;
  responseBodySha256: string | null;
}

/** The same status and body, time after time, and which attempts got it. */
export interface AnswerRun {
  count: number;
  statusCode: number;
  responseBodySha256: string | null;
  firstAttemptNumber: number;
  lastAttemptNumber: number;
}

/**
 * For each attempt, oldest first, the run of same answers that it is the last of so far; null where nobody answered. As where
 * `same_error` is decided: faults of ours (`internal`, `abandoned`) got no answer and do not interrupt a run, and neither does what
 * is still open; no answer at all does.
 */
export function answerRuns(attempts: readonly ComparedAttempt[]): (AnswerRun | null)[] {
  let run: AnswerRun | null = null;
  return attempts.map(({ attemptNumber, statusCode, errorClass, outcomeClass, responseBodySha256 }) => {
    if (outcomeClass === null || errorClass === "internal" || errorClass === "abandoned") return null;
    if (statusCode === null) return (run = null);
    const goesOn = run?.statusCode === statusCode && run.responseBodySha256 === responseBodySha256;
    run = {
      count: goesOn ? run!.count + 1 : 1,
      statusCode,
      responseBodySha256,
      firstAttemptNumber: goesOn ? run!.firstAttemptNumber : attemptNumber,
      lastAttemptNumber: attemptNumber,
    };
    return run;
  });
}

/** The run in which the last attempt that says something of the receiver stands; null where that one got no answer. */
export function lastAnswerRun(attempts: readonly ComparedAttempt[]): AnswerRun | null {
  const said = attempts.findLastIndex(
    ({ outcomeClass, errorClass }) => outcomeClass !== null && errorClass !== "internal" && errorClass !== "abandoned",
  );
  return answerRuns(attempts)[said] ?? null;
}
