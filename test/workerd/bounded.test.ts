import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { bounded, boundedDatabase, within } from "../../src/compose/bounded.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const never = () => new Promise<never>(() => {});
const limit = /no answer within 30000 ms/;

test("what answers in time is answered, and leaves no timer behind", async () => {
  const db = boundedDatabase((env as Env).DB);
  const [row] = await db.batch<{ n: number }>([db.prepare("select ? as n").bind(7)]);
  expect(row!.results).toEqual([{ n: 7 }]);
  expect(await db.prepare("select 8 as n").first("n")).toBe(8);
  expect((await db.prepare("select 9 as n").all()).results).toEqual([{ n: 9 }]);
  expect(await db.prepare("select 10").raw()).toEqual([[10]]);
  await expect(within(5, Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(vi.getTimerCount()).toBe(0);
});

test("a trip to the ledger, or to the bucket, that never comes back has failed after thirty seconds", async () => {
  const statement = { bind: () => statement, first: never, all: never, run: never, raw: never };
  const db = boundedDatabase({ prepare: () => statement, batch: never } as unknown as D1Database);
  const one = db.prepare("select 1").bind(1);
  const trips = [one.first(), one.all(), one.run(), one.raw(), db.batch([one]), bounded({ get: never }).get()];
  const failed = Promise.all(trips.map((trip) => expect(trip).rejects.toThrow(limit)));
  await vi.advanceTimersByTimeAsync(30_000);
  await failed;
});
