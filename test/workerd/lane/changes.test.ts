import { expect, test } from "vitest";
import { cancelAll, createLaneFixture, patch, type LaneFixture } from "./support.ts";

test.each<[string, (fixture: LaneFixture) => Promise<unknown>]>([
  [
    "a pause",
    async ({ tenant, endpointId }) =>
      expect((await tenant.api.post(`/v1/endpoints/${endpointId}/pause`, {})).status).toBe(200),
  ],
  ["a change of URL", (fixture) => patch(fixture, { url: "https://other.example/hook" })],
])(
  "once %s has answered no request of a lane with a rate starts as things were, however late its claims came",
  async (_what, change) => {
    const fixture = await createLaneFixture({ ordering_mode: "unordered", rate_limit_per_second: 4 });
    await fixture.publishAll(Array.from({ length: 12 }, (_, n) => `/${n}`));
    const open = Promise.withResolvers<void>();
    const urls: { url: string; at: number }[] = [];
    const lane = fixture.createLane("a", 0, (deps) => ({
      ...deps,
      sleep: (ms) => scheduler.wait(ms),
      // The ledger stutters for two and a half seconds.
      async claimHead(...input) {
        await open.promise;
        return deps.claimHead(...input);
      },
      send: (request) => (urls.push({ url: request.url, at: fixture.now() }), deps.send(request)),
    }));
    const stutterUntil = Date.now() + 2_500;
    while (Date.now() < stutterUntil) {
      await lane.deps.pumpAgain();
      await scheduler.wait(50);
    }
    expect(urls).toHaveLength(0);
    open.resolve();
    await expect.poll(() => urls.length).toBeGreaterThan(0);
    await change(fixture);
    const changedAt = fixture.now();
    await scheduler.wait(3_000);
    const late = urls
      .filter(({ url, at }) => at > changedAt + 50 && url === "https://consumer.example/hook")
      .map(({ at }) => at - changedAt);
    await cancelAll(fixture);
    expect(late, "ms after the change was answered").toEqual([]);
  },
  20_000,
);
