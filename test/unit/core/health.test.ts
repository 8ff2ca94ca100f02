import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HEALTH_STATES, judgeHealth, type HealthAttempt, type HealthEndpoint } from "../../../src/core/health.ts";

const NOW = Date.parse("2026-11-30T12:00:00.000Z");
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const at = (minutesAgo: number) => NOW - minutesAgo * MINUTE_MS;
const iso = (minutesAgo: number) => new Date(at(minutesAgo)).toISOString();

const ACTIVE: HealthEndpoint = {
  pausedAt: null,
  quarantinedAt: null,
  suspendedAt: null,
  disabledAt: null,
  disabledReason: null,
  failingSince: null,
  disableAfterFailingSeconds: 432_000,
};

const ok = (over: Partial<HealthAttempt> = {}): HealthAttempt => {
  return { requestedAt: NOW, latencyMs: 20, statusCode: 200, outcomeClass: "success", errorClass: null, ...over };
};
const bad = (over: Partial<HealthAttempt> = {}): HealthAttempt => {
  return { ...ok(), statusCode: 503, outcomeClass: "transient", errorClass: "http_5xx", ...over };
};
/** `"+-"`: the newest succeeded, the one before failed; a minute apart. */
const history = (signs: string): HealthAttempt[] =>
  [...signs].map((sign, i) => (sign === "+" ? ok : bad)({ requestedAt: at(i), latencyMs: i + 1 }));
const judge = (signs: string, endpoint: Partial<HealthEndpoint> = {}) =>
  judgeHealth(history(signs), { ...ACTIVE, ...endpoint }, NOW);

describe("the state, and why", () => {
  test.each<[string, string, string]>([
    ["", "unknown", "No request to it that has ended was found."],
    ["+", "healthy", "The last attempt succeeded."],
    ["+".repeat(30), "healthy", "The last 20 attempts succeeded."],
    ["-", "degraded", "Its only attempt failed with http_5xx 503."],
    ["--", "failing", "The last 2 attempts failed, the last with http_5xx 503."],
    ["-----+", "failing", "The last 5 attempts failed, the last with http_5xx 503."],
    ["-".repeat(14) + "+++", "failing", "The last 14 attempts failed, the last with http_5xx 503."],
    ["----+", "degraded", "4 of the last 5 attempts failed, the last of these with http_5xx 503."],
    ["+-----", "degraded", "5 of the last 6 attempts failed, the last of these with http_5xx 503."],
    // One in twenty is healthy still, wherever it stands; two are not.
    ["-" + "+".repeat(19), "healthy", "1 of the last 20 attempts failed, the last of these with http_5xx 503."],
    ["-" + "+".repeat(18), "degraded", "1 of the last 19 attempts failed, the last of these with http_5xx 503."],
    ["+-+-" + "+".repeat(50), "degraded", "2 of the last 20 attempts failed, the last of these with http_5xx 503."],
    // What it did before counts for the rate, and not against it.
    ["+".repeat(20) + "-".repeat(80), "healthy", "The last 20 attempts succeeded."],
  ])("%j is %s", (signs, state, why) => {
    expect(judge(signs)).toMatchObject({ state, why });
  });

  test("an answer that never came has no status", () => {
    const lost = bad({ statusCode: null, errorClass: "timeout", outcomeClass: "unreachable" });
    const health = judgeHealth([lost, bad()], ACTIVE, NOW);
    expect(health.why).toBe("The last 2 attempts failed, the last with timeout.");
    expect(health).toMatchObject({ lastErrorClass: "timeout", lastStatusCode: null });
  });

  test.each<[string, Partial<HealthEndpoint>, string, string]>([
    [
      "disabled before all",
      { disabledAt: at(5), disabledReason: "operator", suspendedAt: at(4), pausedAt: at(3) },
      "disabled",
      `Disabled since ${iso(5)}, by an operator.`,
    ],
    [
      "disabled by a 410",
      { disabledAt: at(5), disabledReason: "gone" },
      "disabled",
      `Disabled since ${iso(5)}, because it answered 410.`,
    ],
    [
      "disabled by its clock",
      { disabledAt: at(5), disabledReason: "failing", failingSince: at(7_205) },
      "disabled",
      `Disabled since ${iso(5)}, because it has had nothing but failures since ${iso(7_205)}.`,
    ],
    [
      "disabled by its clock, and a success came in late",
      { disabledAt: at(5), disabledReason: "failing" },
      "disabled",
      `Disabled since ${iso(5)}, because it had nothing but failures.`,
    ],
    [
      "suspended before paused",
      { suspendedAt: at(4), pausedAt: at(3) },
      "paused",
      `The tenant is suspended since ${iso(4)}: nothing is sent.`,
    ],
    [
      "paused, though in quarantine",
      { pausedAt: at(3), quarantinedAt: at(2) },
      "paused",
      `Paused since ${iso(3)}: nothing is sent.`,
    ],
    [
      "in quarantine",
      { quarantinedAt: at(2) },
      "quarantined",
      `It hangs: in quarantine since ${iso(2)}, tried with few requests at once until it answers.`,
    ],
  ])("what it stands still by comes first: %s", (_name, endpoint, state, why) => {
    for (const signs of ["", "+++", "-----"]) expect(judge(signs, endpoint)).toMatchObject({ state, why });
  });
});

describe("the clock", () => {
  const failing = "-----";
  test("is shown with the moment it runs out, and said of an endpoint that is failing", () => {
    const health = judge(failing, { failingSince: at(60) });
    const runsOut = new Date(at(60) + 5 * DAY_MS).toISOString();
    expect(health).toMatchObject({ failingSince: at(60), disablesAt: at(60) + 5 * DAY_MS });
    expect(health.why).toContain(
      `It has had nothing but failures since ${iso(60)}, and the first failure from ${runsOut} on disables it.`,
    );
  });

  test("that has run out disables by the next failure", () => {
    const { why, disablesAt } = judge(failing, { failingSince: NOW - 5 * DAY_MS });
    expect(disablesAt).toBe(NOW);
    expect(why).toMatch(/and the next failure disables it\.$/);
  });

  test("runs out never where nothing disables, and has done its work where the endpoint is disabled", () => {
    const never = judge(failing, { failingSince: at(60), disableAfterFailingSeconds: null });
    expect(never).toMatchObject({ failingSince: at(60), disablesAt: null });
    expect(never.why).toMatch(new RegExp(`since ${iso(60)}\\.$`));
    expect(judge(failing, { failingSince: at(60), disabledAt: at(1) })).toMatchObject({
      failingSince: at(60),
      disablesAt: null,
    });
  });

  test("does not make an endpoint failing: attempts do", () => {
    expect(judge("+", { failingSince: at(60) }).state).toBe("healthy");
    expect(judge("", { failingSince: at(60) }).state).toBe("unknown");
  });
});

describe("the figures", () => {
  test("of no attempts are none", () => {
    expect(judge("")).toMatchObject({
      window: { attempts: 0, from: null, to: null },
      successRate: null,
      p50Ms: null,
      p95Ms: null,
      consecutiveFailures: 0,
      lastSuccessAt: null,
      lastFailureAt: null,
      lastErrorClass: null,
      lastStatusCode: null,
    });
  });

  test("are of all attempts, the last failure's what it was", () => {
    const attempts = history("+-+").with(1, bad({ requestedAt: at(1), errorClass: "rate_limited", statusCode: 429 }));
    expect(judgeHealth(attempts, ACTIVE, NOW)).toMatchObject({
      window: { attempts: 3, from: at(2), to: at(0) },
      successRate: 2 / 3,
      consecutiveFailures: 0,
      lastSuccessAt: at(0),
      lastFailureAt: at(1),
      lastErrorClass: "rate_limited",
      lastStatusCode: 429,
    });
  });

  test.each<[number[], number, number]>([
    [[7], 7, 7],
    [[1, 2], 1, 2],
    [[3, 1, 2], 2, 3],
    [Array.from({ length: 100 }, (_, i) => 100 - i), 50, 95],
  ])("latencies are by nearest rank: of %j", (latencies, p50Ms, p95Ms) => {
    const attempts = latencies.map((latencyMs) => ok({ latencyMs }));
    expect(judgeHealth([...attempts, ok({ latencyMs: null })], ACTIVE, NOW)).toMatchObject({ p50Ms, p95Ms });
  });

  test("agree with a count by hand, for every history", () => {
    const attempt = fc.record({ isFailure: fc.boolean(), latencyMs: fc.option(fc.nat(30_000)) });
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 100 }), (given) => {
        const attempts = given.map(({ isFailure, latencyMs }, i) =>
          (isFailure ? bad : ok)({ latencyMs, requestedAt: at(i) }),
        );
        const health = judgeHealth(attempts, ACTIVE, NOW);
        const failures = given.filter(({ isFailure }) => isFailure).length;
        expect(HEALTH_STATES).toContain(health.state);
        expect(health.successRate === null).toBe(given.length === 0);
        if (given.length > 0) expect(health.successRate).toBeCloseTo((given.length - failures) / given.length);
        const run = given.findIndex(({ isFailure }) => !isFailure);
        expect(health.consecutiveFailures).toBe(run === -1 ? given.length : run);
        expect(health.lastSuccessAt).toBe(run === -1 ? null : at(run));
        const latencies = given.flatMap(({ latencyMs }) => latencyMs ?? []);
        for (const [share, ms] of [[0.5, health.p50Ms] as const, [0.95, health.p95Ms] as const]) {
          expect(ms === null).toBe(latencies.length === 0);
          if (ms === null) continue;
          expect(latencies).toContain(ms);
          expect(latencies.filter((latency) => latency <= ms).length).toBeGreaterThanOrEqual(share * latencies.length);
          expect(latencies.filter((latency) => latency < ms).length).toBeLessThan(share * latencies.length);
        }
        // One more success never makes it worse, one more failure never better.
        const order = ["failing", "degraded", "unknown", "healthy"];
        const rank = (more: HealthAttempt) => order.indexOf(judgeHealth([more, ...attempts], ACTIVE, NOW).state);
        expect(rank(ok())).toBeGreaterThanOrEqual(rank(bad()));
      }),
      { seed: 60_911, numRuns: 300 },
    );
  });
});
