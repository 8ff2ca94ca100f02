import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { fakeTime, sweep, TIMEOUT_MS, type Scenario } from "./support/sweep.ts";
import type { Scene } from "./support/scene.ts";

fakeTime();

const DAY_MS = 86_400_000;
const OF_THE_WATCHDOG = /^watchdog: (D1|hooklane)|^watchdog alarm|^cron/;

const scenarios: Scenario[] = [
  {
    name: "a lease whose holder died is recovered",
    only: /watchdog: (D1 .*update|hooklane)/,
    isDeath: true,
    act(scene) {
      scene.world.calls.strikeFirst(/consumer: D1 update delivery . insert attempt/, "its process dies after");
      return scene.publish("a");
    },
  },
  {
    name: "work whose doorbell was lost is rung for",
    only: OF_THE_WATCHDOG,
    act(scene) {
      scene.world.calls.strikeFirst(/message to/, "is lost");
      return scene.publish("a");
    },
  },
  {
    name: "a lane whose wake was lost is woken",
    only: /watchdog: lane wake|watchdog: D1 select delivery/,
    endpoint: { ordering_mode: "strict" },
    act(scene) {
      scene.world.calls.strikeFirst(/lane wake/, "throws before");
      return scene.publish("a");
    },
  },
  {
    name: "a head whose object was reset in mid-attempt is taken up",
    only: /lane: (D1 .*update|storage setAlarm)|lane alarm|watchdog: lane wake/,
    isDeath: true,
    endpoint: { ordering_mode: "strict" },
    act(scene) {
      scene.world.calls.strikeFirst(/lane: Sender send/, "its process dies after");
      return scene.publish("a");
    },
  },
  {
    name: "what a disabled endpoint held too long expires",
    only: /watchdog: D1 .*update/,
    isFresh: true,
    ends: { "*": ["expired"] },
    async act(scene) {
      scene.world.receiver.answer = () => ({ status: 503 });
      await scene.publish("a");
      while (scene.world.receiver.requests.length === 0) await scene.world.sleep(1_000);
      await scene.persist("POST", `/v1/endpoints/${scene.endpointId}/disable`);
      await scene.world.sleep(60_000);
      scene.world.calls.jump(4 * DAY_MS);
    },
  },
  {
    name: "what has expired is deleted",
    only: /watchdog: (D1 .*delete|R2)/,
    async act(scene) {
      await scene.publish("a");
      await scene.world.sleep(5_000);
      const { events } = await scene.rows();
      objectKey = events[0]!["payload_ref"].split("#")[0];
      scene.world.calls.jump(60 * DAY_MS);
      // Nobody is owed it any more.
      scene.acked.length = 0;
      scene.keys.clear();
    },
    isDone: async (scene) => (await scene.rows()).events.length === 0,
    async check(scene) {
      const { deliveries, attempts } = await scene.rows();
      const left = [...deliveries, ...attempts].map((row) => `a row of ${row["event_id"]} is left`);
      return [...left, ...((await isObjectLeft(scene)) ? ["its payload is left"] : [])];
    },
  },
];

let objectKey = "";
/** Where the deletion of the object itself was struck, the bucket's own rules remove it. */
async function isObjectLeft({ world }: Scene): Promise<boolean> {
  const { struck } = world.calls.state;
  if (struck.some((text) => !text.includes("R2 delete)"))) return false;
  return struck.length === 0 && (await (env as Env).PAYLOADS.head(objectKey)) !== null;
}

for (const scenario of scenarios) {
  test(`${scenario.name}: whatever fails, what was promised is kept`, { timeout: TIMEOUT_MS }, async () => {
    expect(await sweep(scenario)).toEqual([]);
  });
}
