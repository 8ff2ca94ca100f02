import { expect, test } from "vitest";
import { fakeTime, sweep, TIMEOUT_MS, type Scenario } from "./support/sweep.ts";
import { ledger } from "./support/world.ts";
import type { Scene } from "./support/scene.ts";

fakeTime();

const filterOf = (scene: Scene) => ({ filter: { endpoint_id: scene.endpointId, event_type: scene.type } });

/** Three dead letters, and a receiver that takes what comes from now on. */
async function die(scene: Scene) {
  scene.world.receiver.answer = () => ({ status: 422 });
  for (const name of ["a", "b", "c"]) await scene.publish(name);
  while ((await scene.rows()).deliveries.filter(({ status }) => status === "dead_letter").length < 3) {
    await scene.world.sleep(1_000);
  }
  await scene.world.sleep(1_000);
  scene.world.receiver.answer = () => ({ status: 200 });
}

const replaysOf = async (scene: Scene) =>
  (
    await ledger
      .prepare("select * from replay where tenant_id = ? and filter like ?")
      .bind(scene.tenantId, `%"${scene.type}"%`)
      .all<any>()
  ).results;
const isOver = async (scene: Scene) => {
  const replays = await scene.world.calls.track(() => replaysOf(scene));
  return replays.length > 0 && replays.every(({ state }) => state !== "running");
};

/** One that was asked for twice is two jobs, of which each dead letter gets one replay. */
const check =
  (isStrict: boolean) =>
  async (scene: Scene): Promise<string[]> => {
    const { deliveries } = await scene.rows();
    const replays = await replaysOf(scene);
    const broken: string[] = [];
    const made = deliveries.filter(({ replay_no: no }) => no > 0);
    const replayed = replays.reduce((sum, row) => sum + row.replayed, 0);
    if (made.length !== 3) broken.push(`${made.length} replays`);
    if (replayed !== 3) broken.push(`${replayed} counted as replayed`);
    for (const row of deliveries) {
      if (row["replay_no"] === 0 && row["replayed_as"] !== 1) broken.push(`${row["event_id"]} is not marked`);
    }
    // A dry run that was asked for twice, since nobody got the first answer, is there twice.
    const left = replays.filter(({ state, found }) => state !== "completed" && !(state === "dry_run" && found === 0));
    for (const { state } of left) broken.push(`a replay is ${state}`);
    const parts = await ledger.prepare("select count(*) as n from replay_part").first<number>("n");
    if (parts !== 0) broken.push(`${parts} parts are left`);
    const times = made
      .toSorted((a, b) => (a["event_id"] < b["event_id"] ? -1 : 1))
      .map((row) => row["last_attempt_at"]);
    if (isStrict && times.join() !== times.toSorted((a, b) => a - b).join()) broken.push("the order was lost");
    return broken;
  };

const ends = {
  "*": ["dead_letter", "succeeded"],
  a: ["dead_letter", "succeeded"],
  b: ["dead_letter", "succeeded"],
  c: ["dead_letter", "succeeded"],
};

let subscriptionId = "";

const scenarios: Scenario[] = [
  {
    name: "a bulk replay",
    ends,
    maxReplays: 1,
    only: /request: D1 .*replay|watchdog: D1 .*replay|request: .*arm/,
    arrange: die,
    act: (scene) => scene.persist("POST", "/v1/replays", filterOf(scene)),
    isDone: isOver,
    check: check(false),
  },
  {
    name: "a bulk replay to a strict endpoint",
    endpoint: { ordering_mode: "strict" },
    ends,
    maxReplays: 1,
    // What is due, what is meant, and the step itself.
    only: /watchdog: D1 (select (json_each|delivery)$|.*replay)/,
    arrange: die,
    act: (scene) => scene.persist("POST", "/v1/replays", filterOf(scene)),
    isDone: isOver,
    check: check(true),
  },
  {
    name: "a dry run that is started",
    ends,
    maxReplays: 1,
    only: /request: D1 .*replay/,
    arrange: die,
    async act(scene) {
      const dry = await scene.persist("POST", "/v1/replays", { ...filterOf(scene), dry_run: true });
      await scene.persist("POST", `/v1/replays/${dry.body.id}/start`);
    },
    isDone: isOver,
    check: check(false),
  },
  {
    name: "a back-fill",
    maxReplays: 1,
    only: /watchdog: D1 (select (event|tenant|subscription|json_each)$|.*replay)/,
    async arrange(scene) {
      const [{ id }] = (await scene.request("GET", `/v1/subscriptions?endpoint_id=${scene.endpointId}`)).body.data;
      subscriptionId = id;
      await scene.persist("POST", `/v1/subscriptions/${id}/disable`);
      for (const name of ["a", "b", "c"]) await scene.publish(name);
      await scene.persist("POST", `/v1/subscriptions/${id}/enable`);
      await scene.world.sleep(1_000);
    },
    act: (scene) =>
      scene.persist("POST", "/v1/replays", {
        filter: {
          event_type: scene.type,
          created_after: "2020-01-01T00:00:00.000Z",
          created_before: "2100-01-01T00:00:00.000Z",
        },
        to_subscription_id: subscriptionId,
      }),
    isDone: isOver,
    async check(scene) {
      const { deliveries } = await scene.rows();
      const numbers = deliveries.map((row) => row["replay_no"]).join();
      const left = (await replaysOf(scene)).filter(({ state }) => state !== "completed");
      return [
        ...(numbers === "1,1,1" ? [] : [`the deliveries ${numbers}`]),
        ...left.map(({ state }) => `a replay is ${state}`),
      ];
    },
  },
];

for (const scenario of scenarios) {
  test(`${scenario.name}: whatever fails, each is delivered once more`, { timeout: TIMEOUT_MS }, async () => {
    expect(await sweep(scenario)).toEqual([]);
  });
}
