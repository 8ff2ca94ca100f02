import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { createWatchState, tick } from "../../../src/app/watch/tick.ts";
import { composeWatch } from "../../../src/compose.ts";
import { createActLedger } from "../../../src/storage/ledger/act.ts";
import { createScene } from "../support/scene.ts";

test("what was held by a disable does not expire while the endpoint, enabled again, is paused", async () => {
  const scene = await createScene({ retry_policy: { max_age_seconds: 60 } });
  const { tenant, endpointId } = scene;
  const act = createActLedger(scene.db);
  const delivery = await scene.publishOne();
  const post = async (verb: string) =>
    expect((await tenant.api.post(`/v1/endpoints/${endpointId}/${verb}`, {})).status).toBe(200);
  await post("disable");
  await scene.deps.holdDeliveries([{ ...delivery.ref, holdUntil: Date.now() + 60_000 }]);
  await post("pause");
  await post("enable");
  expect(await delivery.read()).toMatchObject({ status: "pending" });
  expect((await tenant.api.get(`/v1/endpoints/${endpointId}`)).body.state).toBe("paused");
  // Two minutes later, still paused: no clock runs but the event's.
  const real = composeWatch(env as Env, scene.context.context, tenant.shard);
  const mine = <T extends { tenantId: string }>(rows: T[]) => rows.filter(({ tenantId }) => tenantId === tenant.id);
  const deps = {
    ...real,
    now: () => Date.now() + 120_000,
    listDue: async () => [],
    listLongRetriesDue: async () => [],
    listExpiredLeases: async () => [],
    listEndedHolds: async (now: number) => mine(await real.listEndedHolds(now, 1_000_000)),
    listStrandedHolds: async () => ({ endpoints: [], next: null }),
    listOverdueLanes: async () => ({ lanes: [], next: null }),
    walkOldEvents: async () => ({ events: [], next: null }),
    reportsUntil: async () => 0,
    wakeLane: () => {},
  };
  await tick(deps, createWatchState(Date.now()));
  const { status } = await delivery.read();
  await act.cancelDelivery(tenant.id, delivery.ref, Date.now());
  expect(status).toBe("pending");
});
