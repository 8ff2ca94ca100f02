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
