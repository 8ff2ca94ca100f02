import { resolve } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { unstable_readConfig } from "wrangler";
import { listPublishLimiters, parsePublishLimits, PUBLISH_PERIOD_SECONDS } from "../../../src/core/publish-limits.ts";

const SEED = { seed: 20261001 };
/** What is used of a type that leans on packages which are not installed. */
type Limiter = { name: string; namespace_id: string; simple: { limit: number; period: number } };
type Config = { vars: Record<string, unknown>; ratelimits: Limiter[] };

const GIVEN = "free=20/10 pro=40/30 enterprise=60/50";

test("limits are read in any order and spacing, off is none", () => {
  const limits = {
    free: { perTenant: 20, perKey: 10 },
    pro: { perTenant: 40, perKey: 30 },
    enterprise: { perTenant: 60, perKey: 50 },
  };
  expect(parsePublishLimits(GIVEN)).toEqual({ ok: true, value: limits });
  expect(parsePublishLimits(" enterprise=60/50\tpro=40/30  free=20/10\n")).toEqual({ ok: true, value: limits });
  expect(parsePublishLimits("off")).toEqual({ ok: true, value: null });
});

test.each([
  "",
  "on",
  "free=20/10 pro=40/30",
  `${GIVEN} free=20/10`,
  `${GIVEN} gold=1/1`,
  GIVEN.replace("20/10", "20"),
  GIVEN.replace("20/10", "0/10"),
  GIVEN.replace("20/10", "-1/10"),
  GIVEN.replace("20/10", "1e3/10"),
  GIVEN.replace("20/10", "1234567890/10"),
  GIVEN.replace("free", "__proto__"),
])("%j is refused", (text) => {
  expect(parsePublishLimits(text).ok).toBe(false);
});

test("no text makes it throw", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(parsePublishLimits(text).ok).toBe(text === "off");
    }),
    SEED,
  );
});

test("wrangler.toml gives the limiters the numbers that PUBLISH_LIMITS tells producers", () => {
  const config: Config = unstable_readConfig({ config: resolve(import.meta.dirname, "../../../wrangler.toml") });
  const limits = parsePublishLimits(String(config.vars["PUBLISH_LIMITS"]));
  if (!limits.ok || limits.value === null) throw new Error("no limits");
  expect(new Set(config.ratelimits.map(({ simple }) => simple.period))).toEqual(new Set([PUBLISH_PERIOD_SECONDS]));
  expect(Object.fromEntries(config.ratelimits.map(({ name, simple }) => [name, simple.limit]))).toEqual(
    listPublishLimiters(limits.value),
  );
  // Two limiters of one namespace would count into each other.
  expect(new Set(config.ratelimits.map(({ namespace_id }) => namespace_id)).size).toBe(config.ratelimits.length);
});
