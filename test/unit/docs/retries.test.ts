import { expect, test } from "vitest";
import { marked, readDoc, tableRows } from "../../e2e/support/docs/markdown.ts";
import { decideAfterAttempt, relayFaultDelayMs, type ClosedAttempt } from "../../../src/core/delivery-end.ts";
import { classifyOutcome, ERROR_CLASSES } from "../../../src/core/outcome.ts";
import { DEFAULT_RETRY_POLICY, retryDelayMs } from "../../../src/core/retry-policy.ts";

const retries = readDoc("docs/retries.md");
const { max_attempts, max_age_seconds, reject_statuses } = DEFAULT_RETRY_POLICY;

/** `r` just below 1 is the latest; in whole milliseconds it cannot be told from 1. */
const EARLIEST = 0;
const MEAN = 0.5;
const LATEST = 1 - Number.EPSILON;

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const units = ["h", "min", "s"];
  return parts.flatMap((n, i) => (n > 0 ? [`${n} ${units[i]}`] : [])).join(" ") || "0";
}

function delaysTable(): string[][] {
  const sums = [0, 0, 0];
  return Array.from({ length: max_attempts }, (_, i) => {
    if (i === 0) return ["1", "", "", "0", "0", "0"];
    const [early, mean, late] = [EARLIEST, MEAN, LATEST].map((r) => retryDelayMs(DEFAULT_RETRY_POLICY, i, r));
    [early!, mean!, late!].forEach((ms, k) => (sums[k]! += ms));
    const spread = `${duration(early!)} – ${duration(late!)}`;
    return [String(i + 1), duration(mean!), spread, duration(sums[1]!), duration(sums[0]!), duration(sums[2]!)];
  });
}

test("the table of delays is what the default policy gives", () => {
  expect(tableRows(marked(retries, "delays"))).toEqual(delaysTable());
});

test("what the text says of the last attempt is so, and it falls inside the age", () => {
  const [, , , , , latest] = delaysTable().at(-1)!;
  expect(retries.text.replace(/\s+/g, " ")).toContain(
    `the tenth attempt comes ${latest} after the first at the latest`,
  );
  expect(max_attempts).toBe(10);
  expect(max_age_seconds).toBe(72 * 3600);
  const sixth = delaysTable()[DEFAULT_RETRY_POLICY.same_error_limit - 1]!;
  expect(retries.text.replace(/\s+/g, " ")).toContain(`at the sixth attempt, after ${sixth[3]} on average`);
});

test("the contract's table of delays is the same one", () => {
  const seconds = (text: string) =>
    [...text.matchAll(/(\d+) (h|min|s)?/g)].reduce((sum, [, n, unit]) => {
      return sum + Number(n) * (unit === "h" ? 3600 : unit === "min" || unit === undefined ? 60 : 1);
    }, 0);
  const section = readDoc("docs/contract.md").text.split("| After failure |")[1]!.split("\n\n")[0]!;
  const rows = tableRows(`|\n|${section.split("\n").slice(1).join("\n")}`).slice(0, -1);
  expect(rows.map(([n]) => n)).toEqual(DEFAULT_RETRY_POLICY.delays_seconds.map((_, i) => String(i + 1)));
  const shown = rows.map(([, delay]) => seconds(`${delay} `));
  expect(shown).toEqual(DEFAULT_RETRY_POLICY.delays_seconds);
});

test("the default policy is shown whole", () => {
  expect(JSON.parse(marked(retries, "default-policy").replaceAll("```json", "").replaceAll("```", ""))).toEqual(
    DEFAULT_RETRY_POLICY,
  );
});

test("every status is in the table once, with the classes that it gets", () => {
  const shown = new Map<number, string[]>();
  for (const [statuses, ...classes] of tableRows(marked(retries, "statuses"))) {
    for (const range of statuses!.split(", ")) {
      const [first, last = first] = range.split("–").map(Number);
      for (let status = first!; status <= last!; status++) {
        expect(shown.has(status), `${status} is there twice`).toBe(false);
        shown.set(status, classes);
      }
    }
  }
  for (let status = 200; status <= 599; status++) {
    const { outcomeClass, errorClass } = classifyOutcome(
      { kind: "response", status, bodyComplete: true },
      DEFAULT_RETRY_POLICY,
    );
    expect([status, shown.get(status)]).toEqual([
      status,
      [`\`${outcomeClass}\``, errorClass ? `\`${errorClass}\`` : ""],
    ]);
  }
});

test("every error class is explained, and no other", () => {
  const shown = tableRows(marked(retries, "error-classes")).map(([name]) => name!.replaceAll("`", ""));
  expect(shown.toSorted()).toEqual([...ERROR_CLASSES].toSorted());
});

test("receivers are told the statuses that end a delivery", () => {
  const rejecting = reject_statuses.filter((status) => status !== 410).join(", ");
  expect(readDoc("docs/receiving.md").text).toContain(`| ${rejecting} |`);
});

const FAILED: ClosedAttempt = {
  outcome: { outcomeClass: "transient", errorClass: "http_5xx", statusCode: 503 },
  policy: { ...DEFAULT_RETRY_POLICY, jitter: 0 },
  failureCount: 0,
  sameAnswerCount: 1,
  retryAfterMs: null,
  endedAtMs: 0,
  scheduledAtMs: 0,
  eventExpiresAtMs: Number.MAX_SAFE_INTEGER,
  relayFaultCount: 0,
  relayFaultsSinceMs: null,
  isLast: false,
  random: 0.5,
};

test("the relay's own faults wait as the page says", () => {
  expect([1, 2, 3, 4, 5].map((n) => relayFaultDelayMs(n) / 1000)).toEqual([1, 5, 15, 60, 60]);
  expect(retries.text.split("after 1, 5, 15, then every 60 s")).toHaveLength(3);
});

test("Retry-After leaves a minute for the last attempt, or a tenth of what is left", () => {
  const waitMs = (max_age_seconds: number) => {
    const step = decideAfterAttempt({
      ...FAILED,
      policy: { ...FAILED.policy, max_age_seconds },
      retryAfterMs: Number.MAX_SAFE_INTEGER,
    });
    return step.next === "retry" ? step.nextAttemptAtMs : null;
  };
  expect(waitMs(7200)).toBe((7200 - 60) * 1000);
  expect(waitMs(100)).toBe(90 * 1000);
  expect(retries.text.replace(/\s+/g, " ")).toContain(
    "a minute before its end, or a tenth of what is left if that is less",
  );
});

test("a next attempt past the end of the age is not brought forward: it expires there", () => {
  const step = decideAfterAttempt({ ...FAILED, policy: { ...FAILED.policy, max_age_seconds: 3 } });
  expect(step).toMatchObject({ next: "retry", nextAttemptAtMs: 3_000 });
});
