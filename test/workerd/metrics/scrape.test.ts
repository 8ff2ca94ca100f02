import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import worker from "../../../src/index.ts";
import { composeDeliver } from "../../../src/compose.ts";
import type { DeliverDeps } from "../../../src/app/deliver/deliver.ts";
import { deliver } from "../../../src/app/deliver/deliver.ts";
import { operatorToken } from "../support/api.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { createTestContext } from "../support/worker.ts";
import { get, risesOf, scrape, scraped, TOKEN } from "./support.ts";

let status = 200;
beforeEach(() => {
  status = 200;
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok", { status }));
});
afterEach(() => vi.restoreAllMocks());

const watchdogs = () => ["0", "1"].map((shard) => env.WATCHDOG.getByName(`watchdog:${shard}`));

/** Attempts of a tenant by an isolate that counts, whose hand-over is left to whoever scrapes. */
function counting(scene: Scene) {
  const sends: Promise<unknown>[] = [];
  const deps: DeliverDeps = {
    ...composeDeliver(scraped, createTestContext().context, scene.tenant.shard, "queue"),
    background: (work) => void sends.push(work),
    ringLater: () => {},
  };
  return async (...input: Parameters<typeof deliver>[1]) => {
    await deliver(deps, input);
    while (sends.length > 0) await sends.shift();
  };
}

test("without METRICS_TOKEN there is no such route, whatever token comes", async () => {
  for (const token of [TOKEN, operatorToken, "x"]) {
    const answer = await get(env as Env, { Authorization: `Bearer ${token}` });
    expect(answer.status).toBe(404);
    const other = await (await get(env as Env, undefined, "/metricz")).json<any>();
    expect(await answer.json()).toEqual({ ...other, request_id: expect.any(String) });
  }
});

test.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])(
  "%s is 405 where there is a token, else 404",
  async (method) => {
    const answer = await get(scraped, undefined, "/metrics", method);
    expect([answer.status, answer.headers.get("Allow")]).toEqual([405, "GET, HEAD"]);
    expect((await get(env as Env, undefined, "/metrics", method)).status).toBe(404);
  },
);

test("a scrape needs the token, which a refusal of another names", async () => {
  for (const headers of [{}, { Authorization: `Bearer ${operatorToken}` }, { Authorization: `Bearer ${TOKEN}x` }]) {
    const answer = await get(scraped, headers as Record<string, string>);
    expect(answer.status).toBe(401);
    expect(answer.headers.get("WWW-Authenticate")).toBe("Bearer");
  }
  const wrong = await get(scraped, { Authorization: `Bearer ${operatorToken}` });
  expect((await wrong.json<any>()).detail).toContain("METRICS_TOKEN");
  expect((await get(scraped, undefined, "/metrics?name=x")).status).toBe(422);
  expect((await get(scraped, undefined, "/metrics/x")).status).toBe(404);
});

test("what is answered is text that Prometheus reads, and nobody may keep it", async () => {
  const answer = await get(scraped);
  expect(answer.headers.get("Content-Type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(answer.headers.get("Cache-Control")).toBe("no-store");
  const samples = await scrape();
  expect(samples.get('hooklane_shard_up{shard="0"}')).toBe(1);
  expect(samples.get('hooklane_shard_up{shard="1"}')).toBe(1);
  expect(samples.get('hooklane_attempts_total{outcome_class="success",error_class=""}')).toBeGreaterThanOrEqual(0);
});

test("publishes are counted by what became of them", async () => {
  const { tenant } = await createScene();
  const post = (body: object) =>
    worker.fetch(
      new Request("http://relay.test/v1/events", {
        method: "POST",
        headers: { Authorization: `Bearer ${tenant.adminKey}` },
        body: JSON.stringify(body),
      }),
      scraped,
      createTestContext().context as unknown as ExecutionContext,
    );
  const event = { type: "order.created", source: "orders", idempotency_key: "k", payload: 1 };
  const rise = await risesOf(async () => {
    expect((await post(event)).status).toBe(202);
    expect((await post(event)).status).toBe(200);
    expect((await post({ ...event, payload: 2 })).status).toBe(422);
    expect((await post({ ...event, type: "hooklane.x" })).status).toBe(422);
  });
  expect(rise('hooklane_publishes_total{result="accepted"}')).toBe(1);
  expect(rise('hooklane_publishes_total{result="duplicate"}')).toBe(1);
  expect(rise('hooklane_publishes_total{result="refused"}')).toBe(2);
  expect(rise("hooklane_publish_ack_seconds_count")).toBe(4);
});

test("attempts, ends and our lag are counted as the ledger has them", async () => {
  const scene = await createScene();
  const attempt = counting(scene);
  const [good, bad, slow] = [await scene.publishOne(), await scene.publishOne(), await scene.publishOne()];
  const rise = await risesOf(async () => {
    await attempt(good.call(1));
    status = 422;
    await attempt(bad.call(1));
    status = 503;
    await attempt(slow.call(1));
  });
  expect(rise('hooklane_attempts_total{outcome_class="success",error_class=""}')).toBe(1);
  expect(rise('hooklane_attempts_total{outcome_class="rejected",error_class="http_4xx"}')).toBe(1);
  expect(rise('hooklane_attempts_total{outcome_class="transient",error_class="http_5xx"}')).toBe(1);
  expect(rise('hooklane_deliveries_ended_total{status="succeeded",final_outcome="delivered"}')).toBe(1);
  expect(rise('hooklane_deliveries_ended_total{status="dead_letter",final_outcome="rejected"}')).toBe(1);
  expect(rise('hooklane_deliveries_ended_total{status="dead_letter",final_outcome="exhausted"}')).toBe(0);
  expect(rise("hooklane_delivery_lag_seconds_count")).toBe(3);
  expect((await bad.read()).final_outcome).toBe("rejected");
});

test("what isolates of both shards have counted is summed, and what one hands over twice counts once", async () => {
  const series = "hooklane_attempts_total unreachable tls";
  const sample = 'hooklane_attempts_total{outcome_class="unreachable",error_class="tls"}';
  const isolates = [crypto.randomUUID(), crypto.randomUUID()];
  const batches = [1, 2].map((number) => ({ number, counts: { [series]: number } }));
  const handOver = async () => {
    for (const watchdog of watchdogs()) {
      for (const isolate of isolates) await watchdog.takeCounts(isolate, batches);
    }
  };
  const rise = await risesOf(async () => {
    await handOver();
    await handOver();
  });
  expect(rise(sample)).toBe(2 * 2 * 3);
  expect((await risesOf(handOver))(sample)).toBe(0);
});

test("an isolate hands over what it has counted without being scraped", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const context = createTestContext();
  const watchdog = env.WATCHDOG.getByName(`watchdog:${scene.tenant.shard}`);
  const successes = async () => (await watchdog.readCounts()).totals["hooklane_attempts_total success "] ?? 0;
  await scrape();
  const before = await successes();
  await deliver(composeDeliver(scraped, context.context, scene.tenant.shard, "queue"), [delivery.call(1)]);
  await expect.poll(successes).toBe(before + 1);
});

test("of a family that a shard does not answer for there is no sample, never a sum without it", async () => {
  const broken = new Proxy(
    {},
    {
      get: () => () => {
        throw new Error("D1_ERROR: away");
      },
    },
  );
  vi.spyOn(console, "error").mockImplementation(() => {});
  const samples = await scrape({ ...scraped, DB_1: broken } as unknown as Env);
  expect(samples.get('hooklane_shard_up{shard="0"}')).toBe(1);
  expect(samples.get('hooklane_shard_up{shard="1"}')).toBe(0);
  expect(samples.has("hooklane_dead_letters_open")).toBe(false);
  expect(samples.has("hooklane_lanes_open_at_least")).toBe(false);
  expect(samples.has('hooklane_publishes_total{result="accepted"}')).toBe(true);
});
