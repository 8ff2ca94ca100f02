import { expect, test } from "vitest";
import { replayDelivery } from "../../../src/app/delivery/replay-delivery.ts";
import { acting, createHung, endpointOf, enter, names, routeOf } from "./hung.ts";
import { drain } from "./support.ts";

test("a replay to an endpoint in quarantine waits in its lane, and is let through as anything else", async () => {
  const fixture = await createHung();
  const [dead] = await fixture.publishAll(names(1));
  await fixture.tenant.api.post(`/v1/deliveries/${dead}/cancel`);
  await fixture.publishAll(names(2, 1));
  await enter(fixture);
  const { deps, principal } = acting(fixture);
  const replay = await replayDelivery(deps, principal, dead!, {});
  expect(replay).toMatchObject({ replayNo: 1 });
  expect((await fixture.rows()).filter(({ lane_key }) => lane_key !== null)).toHaveLength(3);

  const own = fixture.createLane();
  fixture.answer = () => null;
  await own.run();
  expect(fixture.sent).toHaveLength(1);
  fixture.forward(60_000);
  fixture.answer = () => new Response("ok");
  await drain(fixture, () => [own]);
  expect(
    fixture.sent
      .slice(1)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(names(3));
  await own.run();
  expect(await routeOf(fixture)).toBe("queue");
});

test("a test send to an endpoint in quarantine is made at once, and says nothing of the quarantine", async () => {
  const fixture = await createHung();
  await fixture.publishAll(names(2));
  await enter(fixture);
  const own = fixture.createLane();
  fixture.answer = () => null;
  await own.run();
  expect(own.state.drain).toMatchObject({ size: 1, misses: 1 });
  const before = await endpointOf(fixture);
  const { status, body } = await fixture.tenant.api.post(`/v1/endpoints/${fixture.endpointId}/test`);
  expect({ status, body }).toMatchObject({ status: 200, body: { outcome_class: "success" } });
  expect(await endpointOf(fixture)).toEqual(before);
  expect(own.state.drain).toMatchObject({ size: 1, misses: 1 });
  expect(fixture.sent).toHaveLength(1);
  fixture.forward(60_000);
  fixture.answer = () => new Response("ok");
  await drain(fixture, () => [own]);
});
