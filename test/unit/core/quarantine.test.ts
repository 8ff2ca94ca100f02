import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  beginDrain,
  continueDrain,
  isDrained,
  isHanging,
  isStuck,
  roomOf,
  type Drain,
  type Standing,
} from "../../../src/core/quarantine.ts";

const T0 = 1_700_000_000_000;
const TIMEOUT_MS = 15_000;

const standing = (agesMs: number[], answeredMsAgo: number | null = null): Standing => ({
  startedAt: agesMs.map((age) => T0 - age),
  answeredAt: answeredMsAgo === null ? null : T0 - answeredMsAgo,
});
const aged = (count: number, ageMs: number) => Array.from({ length: count }, () => ageMs);

describe("an endpoint hangs", () => {
  test.each<[string, Standing, number, boolean]>([
    ["eight in flight, all old, none ever answered", standing(aged(8, 5_000)), TIMEOUT_MS, true],
    ["the same a millisecond before", standing(aged(8, 4_999)), TIMEOUT_MS, false],
    ["seven in flight", standing(aged(7, 15_000)), TIMEOUT_MS, false],
    ["half of them old", standing([...aged(4, 5_000), ...aged(4, 10)]), TIMEOUT_MS, true],
    ["fewer than half of eight old", standing([...aged(3, 15_000), ...aged(29, 10)]), TIMEOUT_MS, false],
    ["one answered in that time", standing(aged(32, 15_000), 4_999), TIMEOUT_MS, false],
    ["the last was answered before that", standing(aged(32, 15_000), 5_000), TIMEOUT_MS, true],
    ["by three quarters of a short timeout", standing(aged(8, 1_500)), 2_000, true],
    ["not before those", standing(aged(8, 1_499)), 2_000, false],
  ])("%s", (_what, seen, timeoutMs, hangs) => {
    expect(isHanging(seen, timeoutMs, T0)).toBe(hangs);
  });

  test("nothing in flight does not", () => {
    expect(isHanging(null, TIMEOUT_MS, T0)).toBe(false);
  });

  /** Requests as they come and as fast as there is room, each answered after its time; whether it ever seems to hang. */
  function everHangs(arrivals: number[], latencyMs: (n: number) => number): boolean {
    let answeredAt: number | null = null;
    let under: { at: number; endsAt: number }[] = [];
    let served = 0;
    for (let now = T0; now < T0 + 60_000; now += 100) {
      for (const { endsAt } of under) if (endsAt <= now) answeredAt = Math.max(answeredAt ?? 0, endsAt);
      under = under.filter(({ endsAt }) => endsAt > now);
      if (under.length === 0) answeredAt = null;
      const seen = () => (under.length === 0 ? null : { startedAt: under.map(({ at }) => at), answeredAt });
      while (served < arrivals.length && arrivals[served]! <= now - T0 && under.length < roomOf(seen(), now))
        under.push({ at: now, endsAt: now + latencyMs(served++) });
      if (isHanging(seen(), TIMEOUT_MS, now)) return true;
    }
    return false;
  }

  test("one that takes three seconds for each never does, whatever comes", () => {
    const arrivals = fc.array(fc.nat(30_000), { maxLength: 300 }).map((times) => times.toSorted((a, b) => a - b));
    fc.assert(
      fc.property(arrivals, (times) => !everHangs(times, () => 3_000)),
      { numRuns: 50 },
    );
    expect(everHangs(aged(1_000, 0), () => 3_000)).toBe(false);
  });

  test("a burst of 32 that is answered after five seconds does not", () => {
    expect(everHangs(aged(32, 0), () => 5_000)).toBe(false);
  });

  test("one that never answers does, at 50 a second and at one a second", () => {
    const every = (ms: number) => Array.from({ length: 40 }, (_, n) => n * ms);
    for (const ms of [20, 1_000]) expect(everHangs(every(ms), () => TIMEOUT_MS)).toBe(true);
  });
});

describe("waiting for room is in vain", () => {
  test("when eight are under way, one for two seconds, and none was answered within one", () => {
    expect(isStuck(standing([...aged(7, 10), 2_000]), T0)).toBe(true);
    expect(isStuck(standing([...aged(7, 10), 2_000], 1_001), T0)).toBe(true);
    expect(isStuck(standing([...aged(7, 10), 2_000], 1_000), T0)).toBe(false);
    expect(isStuck(standing([...aged(7, 10), 1_999]), T0)).toBe(false);
    expect(isStuck(standing(aged(7, 9_000)), T0)).toBe(false);
    expect(isStuck(null, T0)).toBe(false);
  });
});

describe("the drain", () => {
  const answer = (drain: Drain, now = T0) => continueDrain(drain, { startedAt: now, isAnswered: true }, now);
  const hang = (drain: Drain, startedAt = T0, now = T0) => continueDrain(drain, { startedAt, isAnswered: false }, now);
  const answers = (drain: Drain, count: number) => aged(count, 0).reduce((to) => answer(to), drain);

  test("begins with one and doubles with each round of answers, up to 32, when it is over", () => {
    const sizes: number[] = [];
    let drain = beginDrain(T0, T0);
    for (let n = 0; n < 40 && !isDrained(drain); n++) {
      sizes.push(drain.size);
      drain = answer(drain);
    }
    expect(sizes).toEqual([1, ...aged(2, 2), ...aged(4, 4), ...aged(8, 8), ...aged(16, 16)]);
    expect(drain.size).toBe(32);
    expect(answers(drain, 64).size).toBe(32);
  });

  test("falls back to one when a request is not answered, and waits before the next", () => {
    const drain = hang(answers(beginDrain(T0, T0), 5), T0, T0 + 5);
    expect(drain).toMatchObject({ size: 1, answered: 0, notBefore: T0 + 1_005 });
  });

  test("waits longer each time a probe hangs, up to a minute, and no more once one is answered", () => {
    const waits: number[] = [];
    let drain = beginDrain(T0, T0);
    for (let n = 0; n < 9; n++) {
      drain = hang(drain);
      waits.push(drain.notBefore - T0);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 60_000, 60_000]);
    expect(answer(drain)).toMatchObject({ size: 2, notBefore: 0, misses: 0 });
  });

  test("takes a round that hangs as one: what was begun before it fell back lengthens nothing", () => {
    let drain = answers(beginDrain(T0 - 1, T0 - 1), 7);
    drain = hang(drain, T0, T0 + 5_000);
    for (let n = 0; n < 7; n++) expect(hang(drain, T0, T0 + 5_001)).toEqual(drain);
  });
});
