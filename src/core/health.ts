import { disablesAt } from "./failing-clock.ts";
import { formatTime } from "./timestamps.ts";

export const HEALTH_STATES = [
  "unknown",
  "healthy",
  "degraded",
  "failing",
  "quarantined",
  "paused",
  "disabled",
] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

/** An answered attempt that says something of its endpoint: neither a fault of ours nor a test. */
export interface HealthAttempt {
  requestedAt: number;
  latencyMs: number | null;
  statusCode: number | null;
  outcomeClass: string;
  errorClass: string | null;
}

export interface HealthEndpoint {
  pausedAt: number | null;
  /** Since when its tenant is. */
  suspendedAt: number | null;
  disabledAt: number | null;
  disabledReason: string | null;
  quarantinedAt: number | null;
  failingSince: number | null;
  disableAfterFailingSeconds: number | null;
}

/** Times in ms since 1970 UTC, those of attempts when their requests began. */
export interface Health {
  state: HealthState;
  /** For whoever is woken by it. */
  why: string;
  window: { attempts: number; from: number | null; to: number | null };
  successRate: number | null;
  p50Ms: number | null;
  p95Ms: number | null;
  consecutiveFailures: number;
  lastSuccessAt: number | null;
  lastFailureAt: number | null;
  lastErrorClass: string | null;
  lastStatusCode: number | null;
  failingSince: number | null;
  disablesAt: number | null;
}

/** The state is that of the newest: an endpoint that has recovered is not held to what it did before. */
const JUDGED = 20;
const HEALTHY_RATE = 0.95;
/** So many failures running are no accident any more; fewer, where there was nothing else. */
const FAILING_RUN = 5;
const FAILING_FROM_THE_START = 2;

/**
 * What recent attempts say of an endpoint. Nothing of it is stored and nothing is decided by it: it is for people.
 * @param attempts newest first
 */
export function judgeHealth(attempts: readonly HealthAttempt[], endpoint: HealthEndpoint, now: number): Health {
  const failed = attempts.filter(isFailure);
  const lastFailure = failed[0] ?? null;
  const firstSuccess = attempts.findIndex((attempt) => !isFailure(attempt));
  const consecutiveFailures = firstSuccess === -1 ? attempts.length : firstSuccess;
  const latencies = attempts.flatMap(({ latencyMs }) => latencyMs ?? []).toSorted((a, b) => a - b);
  const disables =
    endpoint.disabledAt === null ? disablesAt(endpoint.failingSince, endpoint.disableAfterFailingSeconds) : null;
  return {
    ...(standing(endpoint) ?? judgeAttempts(attempts, consecutiveFailures, endpoint, disables, now)),
    window: {
      attempts: attempts.length,
      from: attempts.at(-1)?.requestedAt ?? null,
      to: attempts[0]?.requestedAt ?? null,
    },
    successRate: attempts.length === 0 ? null : (attempts.length - failed.length) / attempts.length,
    p50Ms: percentile(latencies, 0.5),
    p95Ms: percentile(latencies, 0.95),
    consecutiveFailures,
    lastSuccessAt: attempts[firstSuccess]?.requestedAt ?? null,
    lastFailureAt: lastFailure?.requestedAt ?? null,
    lastErrorClass: lastFailure?.errorClass ?? null,
    lastStatusCode: lastFailure?.statusCode ?? null,
    failingSince: endpoint.failingSince,
    disablesAt: disables,
  };
}

type Judgement = Pick<Health, "state" | "why">;

/** Why nothing is sent, or little, whatever attempts said before; the first that holds. */
function standing(endpoint: HealthEndpoint): Judgement | null {
  const { disabledAt, suspendedAt, pausedAt, quarantinedAt } = endpoint;
  if (disabledAt !== null) {
    return { state: "disabled", why: `Disabled since ${formatTime(disabledAt)}, ${disabledBecause(endpoint)}.` };
  }
  if (suspendedAt !== null) {
    return { state: "paused", why: `The tenant is suspended since ${formatTime(suspendedAt)}: nothing is sent.` };
  }
  if (pausedAt !== null) return { state: "paused", why: `Paused since ${formatTime(pausedAt)}: nothing is sent.` };
  if (quarantinedAt !== null) {
    const since = formatTime(quarantinedAt);
    return {
      state: "quarantined",
      why: `It hangs: in quarantine since ${since}, tried with few requests at once until it answers.`,
    };
  }
  return null;
}

function disabledBecause({ disabledReason, failingSince }: HealthEndpoint): string {
  switch (disabledReason) {
    case "gone":
      return "because it answered 410";
    case "failing":
      return failingSince === null
        ? "because it had nothing but failures"
        : `because it has had nothing but failures since ${formatTime(failingSince)}`;
    default:
      return "by an operator";
  }
}

function judgeAttempts(
  attempts: readonly HealthAttempt[],
  consecutiveFailures: number,
  { failingSince }: HealthEndpoint,
  disables: number | null,
  now: number,
): Judgement {
  if (attempts.length === 0) return { state: "unknown", why: "No request to it that has ended was found." };
  const judged = attempts.slice(0, JUDGED);
  const failures = judged.filter(isFailure);
  const isAll = consecutiveFailures === attempts.length;
  if (consecutiveFailures >= (isAll ? FAILING_FROM_THE_START : FAILING_RUN)) {
    const last = `${countOf(consecutiveFailures)} failed, the last with ${answerOf(failures[0]!)}.`;
    return { state: "failing", why: [last, ...clockOf(failingSince, disables, now)].join(" ") };
  }
  if (failures.length === 0) return { state: "healthy", why: `${countOf(judged.length)} succeeded.` };
  const state = judged.length - failures.length >= HEALTHY_RATE * judged.length ? "healthy" : "degraded";
  const last = answerOf(failures[0]!);
  if (judged.length === 1) return { state, why: `Its only attempt failed with ${last}.` };
  const some = `${failures.length} of the last ${judged.length} attempts failed`;
  return { state, why: `${some}, the last of these with ${last}.` };
}

const countOf = (attempts: number) => (attempts === 1 ? "The last attempt" : `The last ${attempts} attempts`);

function clockOf(failingSince: number | null, disables: number | null, now: number): string[] {
  if (failingSince === null) return [];
  const since = `It has had nothing but failures since ${formatTime(failingSince)}`;
  if (disables === null) return [`${since}.`];
  return [
    `${since}, and ${disables <= now ? "the next failure disables it" : `the first failure from ${formatTime(disables)} on disables it`}.`,
  ];
}

/** `http_5xx 503`, or `timeout` without an answer. */
function answerOf({ errorClass, statusCode }: HealthAttempt): string {
  return [errorClass ?? "an unknown error", ...(statusCode === null ? [] : [statusCode])].join(" ");
}

function isFailure({ outcomeClass }: HealthAttempt): boolean {
  return outcomeClass !== "success";
}

/** Nearest rank: a latency that there was. */
function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.ceil(sorted.length * share) - 1] ?? null;
}
