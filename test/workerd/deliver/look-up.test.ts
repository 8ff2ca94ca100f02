import { afterEach, expect, test, vi } from "vitest";
import { lookUpHost } from "../../../src/sender/look-up.ts";

const RESOLVER = "https://dns.example/resolve?kept=1";
afterEach(() => vi.restoreAllMocks());

function answerWith(answer: (url: URL, init: RequestInit) => Response | Promise<Response>) {
  const asked: { url: URL; init: RequestInit }[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init = {}) => {
    const url = new URL(String(input));
    asked.push({ url, init: init as RequestInit });
    return answer(url, init as RequestInit);
  });
  return asked;
}

const lookUp = () => lookUpHost({ resolverUrl: RESOLVER, hostname: "hooks.example.com" });
const records = (type: number, ...addresses: string[]) =>
  Response.json({ Status: 0, Answer: addresses.map((data) => ({ name: "x", type, TTL: 30, data })) });

test("both families are asked for, once each, in DNS over HTTPS' JSON form, following nothing", async () => {
  const asked = answerWith((url) => (url.searchParams.get("type") === "A" ? records(1, "8.8.8.8") : records(28)));
  expect(await lookUp()).toEqual({ verdict: "public", ttlSeconds: 30 });
  expect(asked.map(({ url }) => url.href)).toEqual([
    "https://dns.example/resolve?kept=1&name=hooks.example.com&type=A",
    "https://dns.example/resolve?kept=1&name=hooks.example.com&type=AAAA",
  ]);
  for (const { init } of asked) {
    expect(new Headers(init.headers).get("accept")).toBe("application/dns-json");
    expect(init.redirect).toBe("manual");
  }
});

test("one private address of either family blocks", async () => {
  answerWith((url) => (url.searchParams.get("type") === "A" ? records(1, "8.8.8.8") : records(28, "fd00::1")));
  expect(await lookUp()).toEqual({ verdict: "blocked", ttlSeconds: 30 });
});

test.each<[string, () => Response | Promise<Response>]>([
  ["refuses", () => new Response("no", { status: 403 })],
  ["fails", () => new Response("no", { status: 500 })],
  ["sends elsewhere", () => new Response(null, { status: 302, headers: { Location: "https://other.example/" } })],
  ["says nothing of use", () => new Response("<html>")],
  ["is not there", () => Promise.reject(new Error("Network connection lost."))],
])("a resolver that %s is a fault", async (_, answer) => {
  answerWith(answer);
  expect(await lookUp()).toEqual({ verdict: "fault", reason: expect.any(String) });
});

test("one family that cannot be asked for is a fault, though the other is public", async () => {
  answerWith((url) =>
    url.searchParams.get("type") === "A" ? records(1, "8.8.8.8") : new Response("no", { status: 500 }),
  );
  expect(await lookUp()).toMatchObject({ verdict: "fault" });
});

test("an answer without an end is cut at 16 KiB", async () => {
  let pulled = 0;
  let cancelled = 0;
  answerWith(
    () =>
      new Response(
        new ReadableStream(
          {
            pull(controller) {
              pulled++;
              controller.enqueue(new Uint8Array(1_024).fill(32));
            },
            cancel: () => void cancelled++,
          },
          { highWaterMark: 0 },
        ),
      ),
  );
  expect(await lookUp()).toEqual({ verdict: "fault", reason: "Error: the resolver's answer is too large" });
  expect(pulled).toBeLessThanOrEqual(2 * 18);
  await expect.poll(() => cancelled).toBeGreaterThan(0);
});
