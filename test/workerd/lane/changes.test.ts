import { expect, test } from "vitest";
import { createClock } from "./clock.ts";
import { cancelAll, createLaneFixture, patch, reroute, type LaneFixture } from "./support.ts";

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
    const clock = createClock(fixture.now());
    const open = Promise.withResolvers<void>();
    const urls: { url: string; at: number }[] = [];
    const lane = fixture.createLane("a", 0, (deps) => {
      const { claimHead, ...others } = clock.of({
        ...deps,
        send: (request) => (urls.push({ url: request.url, at: clock.now() }), deps.send(request)),
      });
      // The ledger stutters for two and a half seconds.
      return { ...others, claimHead: (...input) => open.promise.then(() => claimHead(...input)) };
    });
    await clock.run(2_500, () => lane.deps.pumpAgain());
    expect(urls).toHaveLength(0);
    open.resolve();
    while (urls.length === 0) await clock.run(10);
    await change(fixture);
    const changedAt = clock.now();
    await clock.run(3_000, () => lane.deps.pumpAgain());
    // What was claimed waits no longer than this for its turn.
    const late = urls
      .filter(({ url, at }) => at > changedAt + 110 && url === "https://consumer.example/hook")
      .map(({ at }) => at - changedAt);
    await cancelAll(fixture);
    expect(late, "ms after the change was answered").toEqual([]);
    // What was claimed and given back is not on record: no request was made of it.
    const attempts = fixture.db.prepare("select count(*) as n from attempt where endpoint_id = ?");
    expect(await attempts.bind(fixture.endpointId).first("n")).toBe(urls.length);
  },
);

test("from strict to keyed the other keys do not wait for a request that hangs", async () => {
  const fixture = await createLaneFixture();
  await fixture.publishAll(["k/0", "x/0"]);
  let end!: (response: Response) => void;
  fixture.answer = ({ name }) =>
    name === "k/0" ? new Promise<Response>((resolve) => (end = resolve)) : new Response("ok");
  const lane = fixture.createLane();
  const done = lane.run();
  await expect.poll(() => fixture.sent.length).toBe(1);
  await reroute(fixture, "keyed", "lane");
  await lane.deps.pumpAgain();
  await expect.poll(() => fixture.sent.map(({ name }) => name)).toEqual(["k/0", "x/0"]);
  end(new Response("ok"));
  await done;
});
