import { expect } from "vitest";
import { createInFlight } from "../../../src/app/deliver/in-flight.ts";
import { deliver, type DeliverDeps } from "../../../src/app/deliver/deliver.ts";
import { enterQuarantine, type QuarantineDeps } from "../../../src/app/endpoint/quarantine.ts";
import { composeDeliver } from "../../../src/compose.ts";
import type { WireResult } from "../../../src/core/outcome.ts";
import { createEndpointStore } from "../../../src/storage/config/endpoints.ts";
import { createRerouteLedger } from "../../../src/storage/ledger/reroute.ts";
import { gate } from "../support/scene.ts";
import { shardDeps } from "../support/worker.ts";
import { createLaneFixture, withoutLanes, type LaneFixture } from "./support.ts";

export const POLICY = { delays_seconds: [5], jitter: 0, max_attempts: 40, same_error_limit: 40 };
export const SEEN = { url: "https://consumer.example/hook", inFlight: 8, oldestMs: 5_000 };

export const names = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `/${String(n + from).padStart(4, "0")}`);

export const placeOf = ({ tenant, endpointId }: LaneFixture) => ({ tenantId: tenant.id, endpointId });

export const endpointOf = async ({ tenant, endpointId }: LaneFixture) =>
  (await tenant.api.get(`/v1/endpoints/${endpointId}`)).body;

export const routeOf = ({ db, endpointId }: LaneFixture) =>
  db.prepare("select route from endpoint where id = ?").bind(endpointId).first<string>("route");

export const createHung = async (endpoint: Record<string, unknown> = {}) =>
  createLaneFixture({ ordering_mode: "unordered", retry_policy: POLICY, ...endpoint });

export function quarantineDeps(fixture: LaneFixture, over: Partial<QuarantineDeps> = {}) {
  const lines: unknown[] = [];
  const deps: QuarantineDeps = {
    ...createRerouteLedger(fixture.db),
    endpoints: createEndpointStore(fixture.db),
    refusedAt: new Map(),
    now: fixture.now,
    ringLater: () => {},
    wakeLane: () => {},
    logQuarantine: (line) => void lines.push(line.event),
    logFault: (what) => void lines.push(what),
    ...over,
  };
  return { deps, lines };
}

/** Use-cases as the API runs them, but that they wake no lane and ring for nobody. */
export function acting(fixture: LaneFixture) {
  return {
    deps: shardDeps(fixture.tenant, fixture.context, withoutLanes),
    principal: { tenantId: fixture.tenant.id, scope: "admin", sourceId: null } as const,
  };
}

export async function enter(fixture: LaneFixture) {
  await enterQuarantine(quarantineDeps(fixture).deps, placeOf(fixture), SEEN);
  expect((await endpointOf(fixture)).quarantined_at).not.toBeNull();
}

/** A consumer of queues whose receiver keeps every request until it is let go. */
export function hangingConsumer(fixture: LaneFixture) {
  const { open: end, opened: ended } = gate<WireResult>();
  const later: unknown[] = [];
  let sent = 0;
  const deps: DeliverDeps = {
    ...composeDeliver(withoutLanes, fixture.context.context, fixture.tenant.shard, "queue"),
    now: fixture.now,
    inFlight: createInFlight(),
    async sleep(ms) {
      fixture.forward(ms);
      await new Promise((resolve) => setTimeout(resolve));
    },
    ringLater: (calls) => void later.push(...calls),
    logFault: () => {},
    async send() {
      sent++;
      return { wire: await ended, bodySha256: null, headers: [] };
    },
  };
  return {
    deps,
    end,
    later,
    sent: () => sent,
    ring: (ids: string[]) =>
      deliver(
        deps,
        ids.map((deliveryId) => ({ tenantId: fixture.tenant.id, deliveryId, attemptNumber: 1 })),
      ),
  };
}
