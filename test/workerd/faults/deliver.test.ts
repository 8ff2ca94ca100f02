import { expect, test } from "vitest";
import { fakeTime, sweep, TIMEOUT_MS, type Scenario } from "./support/sweep.ts";
import type { Scene } from "./support/scene.ts";
import { ledger } from "./support/world.ts";

fakeTime();

const firstAnswer = (scene: Scene, status: number, afterMs = 0) => {
  scene.world.receiver.answer = ({ attempt }) => ({ status: attempt === 1 ? status : 200, afterMs });
};
const isAllAnswered = ({ world }: Scene) => world.receiver.requests.every(({ status }) => status !== null);
const LEASE_MS = 15_000 + 30_000;
const BEHIND_THE_ACK = /^(consumer: (D1|R2|Sender|hooklane)|message)/;

const scenarios: Scenario[] = [
  {
    name: "deliver at the second attempt",
    only: BEHIND_THE_ACK,
    act(scene) {
      firstAnswer(scene, 503);
      return scene.publish("a");
    },
  },
  {
    name: "deliver to an endpoint that is gone",
    only: /consumer: D1 .*update|Sender/,
    isFresh: true,
    ends: { "*": ["dead_letter"] },
    act(scene) {
      scene.world.receiver.answer = () => ({ status: 410 });
      return scene.publish("a");
    },
    async check({ endpointId }) {
      const sql = "select disabled_reason from endpoint where id = ?";
      const reason = await ledger.prepare(sql).bind(endpointId).first("disabled_reason");
      return reason === "gone" ? [] : [`the endpoint is disabled for ${String(reason)}`];
    },
  },
  {
    name: "deliver what a source signs that has no key yet",
    only: /^consumer: D1 .*source/,
    endpoint: { source_signatures: true },
    isFresh: true,
    arrange: ({ endpointId }) =>
      ledger
        .prepare(
          `update source set delivery_key = null, delivery_public_key = null, delivery_key_version = 0
           where tenant_id = (select tenant_id from endpoint where id = ?)`,
        )
        .bind(endpointId)
        .run(),
    act: (scene) => scene.publish("a"),
    check: async ({ world }) =>
      world.receiver.requests.every(({ isSignedBySource }) => isSignedBySource) ? [] : ["a request was not signed"],
  },
  {
    name: "deliver to a destination that is refused",
    only: BEHIND_THE_ACK,
    ends: { "*": ["failed"] },
    arrange: ({ endpointId }) =>
      ledger.prepare("update endpoint set url = 'ftp://consumer.example/' where id = ?").bind(endpointId).run(),
    act: (scene) => scene.publish("a"),
  },
  ...["unordered", "strict"].map((ordering_mode): Scenario => ({
    name: `a receiver of an ${ordering_mode} endpoint that says yes twice as slowly as the lease`,
    faults: [],
    endpoint: { ordering_mode },
    act(scene) {
      scene.world.receiver.answer = () => ({ status: 200, afterMs: 2 * LEASE_MS });
      return scene.publish("a");
    },
    isDone: isAllAnswered,
    async check(scene) {
      const { deliveries, attempts } = await scene.rows();
      const afterMs = deliveries[0]!["terminal_at"] - attempts[0]!["requested_at"];
      return afterMs < 2 * LEASE_MS + 1_000 ? [] : [`the first yes did not end it, but one after ${afterMs} ms`];
    },
  })),
  {
    name: "a receiver that says no slowly, long after its lease",
    faults: [],
    async act(scene) {
      // The no comes while the second request is out.
      scene.world.receiver.answer = ({ attempt }) =>
        attempt === 1 ? { status: 503, afterMs: LEASE_MS + 25_000 } : { status: 200, afterMs: LEASE_MS - 5_000 };
      await scene.publish("a");
      await scene.world.sleep(LEASE_MS + 28_000);
      const { deliveries } = await scene.rows();
      expect(deliveries).toMatchObject([{ status: "processing", attempt_count: 2 }]);
    },
    isDone: isAllAnswered,
    check({ world }) {
      const { length } = world.receiver.requests;
      return length === 2 ? [] : [`the late no of an abandoned attempt moved the delivery: ${length} requests`];
    },
  },
  {
    name: "record a report by the queue of outcomes",
    only: /consumer: (D1 .*attempt|watchdog)|outcomes/,
    // Refused by the ledger, and then lost by its queue: nobody knows of that answer any more, or not for minutes.
    mayForget: /message to hooklane-outcomes\) (is lost|comes late)/,
    act(scene) {
      scene.world.calls.strikeFirst(/consumer: D1 update attempt/, "throws before");
      return scene.publish("a");
    },
  },
  {
    name: "rotate the secret in the middle of a delivery",
    only: /insert signing_secret|update signing_secret|consumer: D1 .*insert attempt/,
    isFresh: true,
    async act(scene) {
      firstAnswer(scene, 503, 2_000);
      const rotate = () => scene.persist("POST", `/v1/endpoints/${scene.endpointId}/secrets/rotate`, {});
      await Promise.all([scene.publish("a"), scene.world.sleep(500).then(rotate)]);
    },
    async check({ endpointId }) {
      const sql = "select count(*) as n from signing_secret where endpoint_id = ?";
      const n = await ledger.prepare(sql).bind(endpointId).first<number>("n");
      return n === 2 ? [] : [`there are ${n} secrets`];
    },
  },
  {
    name: "send a test",
    isOneMore: true,
    isFresh: true,
    ends: { "*": ["succeeded", "dead_letter"] },
    async act(scene) {
      const { status } = await scene.persist("POST", `/v1/endpoints/${scene.endpointId}/test`);
      expect(status).toBe(200);
    },
  },
];

for (const scenario of scenarios) {
  test(`${scenario.name}: whatever fails, what was promised is kept`, { timeout: TIMEOUT_MS }, async () => {
    expect(await sweep(scenario)).toEqual([]);
  });
}
