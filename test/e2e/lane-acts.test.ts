import { describe, expect, test } from "vitest";
import {
  createEndpoint,
  createTenant,
  eventually,
  expectStatus,
  terminalDelivery,
  type TestTenant,
} from "./support/client.ts";
import {
  act,
  actOn,
  answering,
  failedOnce,
  holding,
  laneWhen,
  numberOf,
  publishNumbered,
  range,
  readDelivery,
  readLane,
  SLOW_RETRY,
} from "./support/lanes.ts";
import { withReceiver, type Handler, type Receiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

interface Scene {
  tenant: TestTenant;
  receiver: Receiver;
  endpointId: string;
  /** Of the events 0, 1, 2, … in their order. */
  ids: string[];
}

/** A strict lane with so many events, to a receiver that behaves so. */
function withStrictLane(
  events: number,
  handler: Handler,
  settings: Record<string, unknown>,
  use: (scene: Scene) => Promise<void>,
): Promise<void> {
  return withReceiver(async (receiver) => {
    receiver.handle(handler);
    const tenant = await createTenant(relay.url);
    const { id: endpointId } = await createEndpoint(tenant, {
      url: receiver.url,
      ordering_mode: "strict",
      ...settings,
    });
    await use({ tenant, receiver, endpointId, ids: await publishNumbered(tenant, events) });
  });
}

const skip = ({ tenant, endpointId }: Scene, delivery_id: string) =>
  tenant.admin.post(`/v1/endpoints/${endpointId}/lane/skip`, { delivery_id });

describe("on_exhausted = block", () => {
  const BLOCK = { on_exhausted: "block" };

  test("a dead head stops the lane until it is replayed, to the front, and a second bad head stops it until it is skipped", () =>
    withStrictLane(
      5,
      answering((n, times) => (n === 2 || (n === 1 && times === 1) ? 400 : 200)),
      BLOCK,
      async (scene) => {
        const { tenant, receiver, endpointId, ids } = scene;
        const first = await laneWhen(tenant, endpointId, "blocked");
        expect(first).toMatchObject({ depth: 3, heads: [{ delivery_id: ids[1], status: "dead_letter", depth: 3 }] });
        const replay = await expectStatus(202, actOn(tenant, ids[1]!, "replay"));
        await terminalDelivery(tenant, ids[2]!);
        const second = await laneWhen(tenant, endpointId, "blocked");
        expect(second.heads).toMatchObject([{ delivery_id: ids[2] }]);
        expect(await readDelivery(tenant, replay.id)).toMatchObject({ status: "succeeded", replay_of: ids[1] });
        expect(receiver.received.map(numberOf)).toEqual([0, 1, 1, 2]);

        await expectStatus(200, skip(scene, ids[2]!));
        await receiver.waitFor(6);
        expect(receiver.received.map(numberOf)).toEqual([0, 1, 1, 2, 3, 4]);
        await laneWhen(tenant, endpointId, "idle");
        expect(await readDelivery(tenant, ids[2]!)).toMatchObject({ status: "dead_letter", replayed_as: null });
      },
    ));

  test("a replay of the blocked head that dies too blocks the lane again", () =>
    withStrictLane(
      3,
      answering((n) => (n === 0 ? 400 : 200)),
      BLOCK,
      async ({ tenant, receiver, endpointId, ids }) => {
        await laneWhen(tenant, endpointId, "blocked");
        const replay = await expectStatus(202, actOn(tenant, ids[0]!, "replay"));
        await terminalDelivery(tenant, replay.id);
        expect(await laneWhen(tenant, endpointId, "blocked")).toMatchObject({
          depth: 2,
          heads: [{ delivery_id: replay.id }],
        });
        expect(receiver.received.map(numberOf)).toEqual([0, 0]);
      },
    ));

  test("only the blocked head can be skipped, and once", () =>
    withStrictLane(
      3,
      answering((n) => (n === 0 ? 400 : 200)),
      BLOCK,
      async (scene) => {
        const { tenant, endpointId, ids, receiver } = scene;
        await laneWhen(tenant, endpointId, "blocked");
        expect(await expectStatus(409, skip(scene, ids[1]!))).toMatchObject({ code: "not_blocked" });
        expect(await expectStatus(409, skip(scene, `${ids[0]}1`))).toMatchObject({ code: "not_blocked" });
        await expectStatus(422, skip(scene, "nothing"));
        expect(await readLane(tenant, endpointId)).toMatchObject({ state: "blocked" });
        await expectStatus(200, skip(scene, ids[0]!));
        await receiver.waitFor(3);
        expect(await expectStatus(409, skip(scene, ids[0]!))).toMatchObject({ code: "not_blocked" });
      },
    ));

  test("a cancelled head does not stop the lane", () =>
    withStrictLane(
      3,
      answering((n) => (n === 0 ? 500 : 200)),
      { ...BLOCK, retry_policy: SLOW_RETRY },
      async ({ tenant, receiver, ids }) => {
        await failedOnce(tenant, ids[0]!);
        await expectStatus(200, actOn(tenant, ids[0]!, "cancel"));
        await receiver.waitFor(3);
        expect(receiver.received.map(numberOf)).toEqual([0, 1, 2]);
      },
    ));

  test("one blocked key stops no other", () =>
    withReceiver(async (receiver) => {
      receiver.handle(answering((n) => (n === 0 ? 400 : 200)));
      const tenant = await createTenant(relay.url);
      const settings = { url: receiver.url, ordering_mode: "keyed", on_exhausted: "block" };
      const endpoint = await createEndpoint(tenant, settings);
      await publishNumbered(tenant, 10, { keyOf: (n) => (n % 2 === 0 ? "bad" : "good") });
      await receiver.waitFor(6);
      const lane = await eventually(async () => {
        const seen = await readLane(tenant, endpoint.id);
        return seen.state === "blocked" && seen.heads.length === 1 && seen;
      });
      expect(lane.heads).toMatchObject([{ ordering_key: "bad", status: "dead_letter", depth: 4 }]);
      expect(receiver.received.map(numberOf).filter((n) => n % 2 === 1)).toEqual([1, 3, 5, 7, 9]);
      expect(receiver.received.map(numberOf).filter((n) => n % 2 === 0)).toEqual([0]);
    }));
});

test("on_exhausted = advance: a dead head lets the next go", () =>
  withStrictLane(
    4,
    answering((n) => (n === 1 ? 400 : 200)),
    {},
    async ({ tenant, receiver, ids }) => {
      await receiver.waitFor(4);
      expect(receiver.received.map(numberOf)).toEqual(range(4));
      expect(await terminalDelivery(tenant, ids[1]!)).toMatchObject({ status: "dead_letter" });
    },
  ));

test("cancelling a head that waits for its retry lets the next go at once", () =>
  withStrictLane(
    3,
    answering((n) => (n === 0 ? 500 : 200)),
    { retry_policy: SLOW_RETRY },
    async ({ tenant, receiver, ids }) => {
      await failedOnce(tenant, ids[0]!);
      await expectStatus(200, actOn(tenant, ids[0]!, "cancel"));
      await receiver.waitFor(3);
      expect(receiver.received.map(numberOf)).toEqual([0, 1, 2]);
    },
  ));

test("what is cancelled behind a head is never sent, and what stands behind it is", () =>
  withStrictLane(
    4,
    answering((n, times) => (n === 0 && times === 1 ? 500 : 200)),
    { retry_policy: SLOW_RETRY },
    async ({ tenant, receiver, ids }) => {
      await failedOnce(tenant, ids[0]!);
      await expectStatus(200, actOn(tenant, ids[1]!, "cancel"));
      await expectStatus(202, actOn(tenant, ids[0]!, "retry"));
      await receiver.waitFor(4);
      expect(receiver.received.map(numberOf)).toEqual([0, 0, 2, 3]);
    },
  ));

test("retrying a head that waits makes its next attempt now; retrying one behind it passes nothing", () =>
  withStrictLane(
    3,
    answering((n, times) => (n === 0 && times < 3 ? 500 : 200)),
    { retry_policy: SLOW_RETRY },
    async ({ tenant, receiver, ids }) => {
      await failedOnce(tenant, ids[0]!);
      await expectStatus(202, actOn(tenant, ids[2]!, "retry"));
      await expectStatus(202, actOn(tenant, ids[0]!, "retry"));
      await receiver.waitFor(2);
      await expectStatus(409, actOn(tenant, ids[0]!, "replay"));
      await laneWhen(tenant, (await readDelivery(tenant, ids[0]!)).endpoint_id, "waiting");
      await expectStatus(202, actOn(tenant, ids[0]!, "retry"));
      await receiver.waitFor(5);
      expect(receiver.received.map(numberOf)).toEqual([0, 0, 0, 1, 2]);
    },
  ));

test("what is in flight in a lane can be neither retried nor cancelled", () => {
  const gate = holding();
  return withStrictLane(2, gate.handler, {}, async ({ tenant, receiver, ids }) => {
    await receiver.waitFor(1);
    expect(await expectStatus(409, actOn(tenant, ids[0]!, "retry"))).toMatchObject({ code: "not_pending" });
    expect(await expectStatus(409, actOn(tenant, ids[0]!, "cancel"))).toMatchObject({ code: "in_flight" });
    gate.letGo();
    await receiver.waitFor(2);
    expect(receiver.received.map(numberOf)).toEqual([0, 1]);
  });
});

describe.each([
  ["pause", "resume"],
  ["disable", "enable"],
] as const)("after a %s", (hold, release) => {
  test("a head cannot be retried, says that it is held, and after it goes on", () =>
    withStrictLane(
      2,
      answering((_, times) => (times === 1 ? 500 : 200)),
      { retry_policy: SLOW_RETRY },
      async ({ tenant, receiver, endpointId, ids }) => {
        await failedOnce(tenant, ids[0]!);
        await act(tenant, endpointId, hold);
        for (const id of ids) {
          const problem = await expectStatus(409, actOn(tenant, id, "retry"));
          expect(problem).toMatchObject({ code: "held", detail: expect.stringMatching(new RegExp(hold)) });
        }
        expect(receiver.received).toHaveLength(1);
        await act(tenant, endpointId, release);
        await expectStatus(202, actOn(tenant, ids[0]!, "retry"));
        await receiver.waitFor(3);
        expect(receiver.received.map(numberOf)).toEqual([0, 0, 1]);
      },
    ));
});

test("any replay but a blocked head's joins at the tail", () =>
  withStrictLane(
    4,
    answering((n, times) => (n === 1 && times === 1 ? 500 : 200)),
    { retry_policy: SLOW_RETRY },
    async ({ tenant, receiver, ids }) => {
      await failedOnce(tenant, ids[1]!);
      const replay = await expectStatus(202, actOn(tenant, ids[0]!, "replay"));
      await publishNumbered(tenant, 1, { from: 4 });
      await expectStatus(202, actOn(tenant, ids[1]!, "retry"));
      await receiver.waitFor(7);
      expect(receiver.received.map(numberOf)).toEqual([0, 1, 1, 2, 3, 0, 4]);
      const [original, again] = [receiver.received[0]!, receiver.received[5]!];
      expect(again.headers["webhook-id"]).toBe(original.headers["webhook-id"]);
      expect(await terminalDelivery(tenant, replay.id)).toMatchObject({ status: "succeeded", replay_of: ids[0] });
    },
  ));
