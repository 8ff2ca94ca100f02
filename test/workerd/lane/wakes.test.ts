import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { createDoorbells } from "../../../src/compose/doorbells.ts";
import type { EndpointLane } from "../../../src/objects/endpoint-lane.ts";
import { createScene } from "../support/scene.ts";
import { createTestContext } from "../support/worker.ts";

const COUNT = 100;

test("of many lanes that one invocation wakes 32 are looking at their rows at once, and all come to their turn", async () => {
  const { tenant } = await createScene();
  const woken: string[] = [];
  let underWay = 0;
  let most = 0;
  const lanes = (env as Env).LANES as DurableObjectNamespace<EndpointLane>;
  const counted = {
    idFromName: (name: string) => lanes.idFromName(name),
    get: (id: DurableObjectId) => ({
      async wake() {
        most = Math.max(most, ++underWay);
        await lanes.get(id).wake();
        underWay--;
        woken.push(id.name!);
      },
    }),
  };
  const context = createTestContext();
  const doorbells = createDoorbells({ ...(env as Env), LANES: counted as never }, context.context, tenant.shard);
  // Of no endpoint: each finds nothing, which takes a trip to the ledger all the same.
  const names = Array.from({ length: COUNT }, (_, n) => `ep_${String(n).padStart(16, "0")}`);
  for (const endpointId of names) doorbells.wakeLane({ tenantId: tenant.id, endpointId, generation: 0 });
  await context.settled();
  expect(most).toBe(32);
  expect(woken.toSorted()).toEqual(names.map((endpointId) => `lane:${tenant.shard}:${tenant.id}:${endpointId}:0`));
});

test("what is new for a lane that rests rings once in a second for all of it; anything else rings at once", async () => {
  const { tenant } = await createScene();
  const restsFor = [60_000, 60_000, 60_000, null, null];
  let rings = 0;
  const lanes = {
    idFromName: (name: string) => name,
    get: () => ({
      async wake() {
        const ms = restsFor[rings++];
        return ms == null ? null : Date.now() + ms;
      },
    }),
  };
  const context = createTestContext();
  const doorbells = createDoorbells({ ...(env as Env), LANES: lanes as never }, context.context, tenant.shard);
  const lane = { tenantId: tenant.id, endpointId: "ep_0000000000000000", generation: 0 };
  const ringsAfter = async (...ringing: (() => unknown)[]) => {
    for (const ring of ringing) ring();
    await context.settled();
    return rings;
  };
  const announce = () => doorbells.announceLane(lane);
  expect(await ringsAfter(announce)).toBe(1);
  // Now it is known to rest.
  expect(await ringsAfter(announce, announce, announce)).toBe(2);
  expect(await ringsAfter(() => doorbells.wakeLane(lane))).toBe(3);
  expect(await ringsAfter(() => doorbells.wakeLane(lane))).toBe(4);
  // And now that it does not.
  expect(await ringsAfter(announce, announce)).toBe(6);
});
