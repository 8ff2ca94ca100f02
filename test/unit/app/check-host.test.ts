import { expect, test } from "vitest";
import { createHostCheck, type CheckHostDeps, type VerdictCache } from "../../../src/app/deliver/check-host.ts";

type Answer = Awaited<ReturnType<CheckHostDeps["lookUp"]>>;

function scene(answers: Record<string, Answer> = {}) {
  const clock = { now: 0 };
  const asked: string[] = [];
  const cache: VerdictCache = new Map();
  const lookUp = async (hostname: string) => {
    asked.push(hostname);
    return answers[hostname] ?? ({ verdict: "public", ttlSeconds: 300 } as const);
  };
  const create = () => createHostCheck({ now: () => clock.now, lookUp }, cache);
  return { clock, asked, cache, create, check: create() };
}

test("a verdict is remembered for as long as DNS says", async () => {
  const { check, clock, asked } = scene({ "a.example": { verdict: "blocked", ttlSeconds: 20 } });
  expect(await check("a.example")).toBe("blocked");
  clock.now = 19_999;
  expect(await check("a.example")).toBe("blocked");
  expect(asked).toHaveLength(1);
  clock.now = 20_000;
  await check("a.example");
  expect(asked).toHaveLength(2);
});

test("… but for a minute at most, from when it was asked", async () => {
  const { check, clock, asked } = scene();
  await check("a.example");
  clock.now = 59_999;
  await check("a.example");
  expect(asked).toHaveLength(1);
  clock.now = 60_000;
  await check("a.example");
  expect(asked).toHaveLength(2);
});

test("what has no time to live, and what leads nowhere, is asked for each time", async () => {
  const { check, asked, cache } = scene({
    "a.example": { verdict: "public", ttlSeconds: 0 },
    "b.example": { verdict: "unresolvable", ttlSeconds: 0 },
  });
  for (const host of ["a.example", "a.example", "b.example", "b.example"]) await check(host);
  expect(asked).toHaveLength(4);
  expect(cache.size).toBe(0);
});

test("a resolver that says nothing is a fault each time, never a verdict, and is not remembered", async () => {
  const answers: Record<string, Answer> = { "a.example": { verdict: "fault", reason: "the resolver answered 500" } };
  const { check, cache } = scene(answers);
  await expect(check("a.example")).rejects.toThrow(
    "where the host's name leads is not known: the resolver answered 500",
  );
  await expect(check("a.example")).rejects.toThrow();
  expect(cache.size).toBe(0);
  answers["a.example"] = { verdict: "public", ttlSeconds: 1 };
  expect(await check("a.example")).toBe("public");
});

test("questions about one host at once are one question", async () => {
  const { check, asked } = scene({ "a.example": { verdict: "public", ttlSeconds: 0 } });
  expect(await Promise.all(["a.example", "a.example", "b.example"].map(check))).toEqual(["public", "public", "public"]);
  expect(asked).toEqual(["a.example", "b.example"]);
});

test("what one invocation has found out others know, but none waits for another's question", async () => {
  const { create, asked } = scene();
  await Promise.all([create()("a.example"), create()("a.example")]);
  expect(asked).toHaveLength(2);
  await create()("a.example");
  expect(asked).toHaveLength(2);
});

test("a thousand hosts are remembered, and the oldest forgotten", async () => {
  const { check, cache, asked } = scene();
  for (let i = 0; i < 1_100; i++) await check(`h${i}.example`);
  expect(cache.size).toBe(1_000);
  asked.length = 0;
  await check("h1099.example");
  await check("h100.example");
  expect(asked).toEqual([]);
  await check("h99.example");
  expect(asked).toEqual(["h99.example"]);
});
