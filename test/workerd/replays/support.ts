import { env } from "cloudflare:workers";
import type { DeliveryCall } from "../../../src/app/deliver/delivery-call.ts";
import { createReplay } from "../../../src/app/replay/create-replay.ts";
import { goOnWithReplays, type GoOnWithReplaysDeps } from "../../../src/app/replay/go-on.ts";
import { cancelReplay, startReplay } from "../../../src/app/replay/switch-replay.ts";
import { composeWatch } from "../../../src/compose.ts";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { createLaneFixture, withoutLanes, type LaneFixture } from "../lane/support.ts";
import { EVERYTHING } from "../support/watch.ts";
import { shardDeps } from "../support/worker.ts";

export interface ReplayFixture extends LaneFixture {
  /** Publishes events with these names in one request, and ends their deliveries so. */
  endAll(names: string[], end?: Partial<End>): Promise<string[]>;
  end(ids: string[], end?: Partial<End>): Promise<void>;
  /** Asks for a replay without the watchdog. */
  ask(body: Record<string, unknown>): ReturnType<typeof createReplay>;
  start(id: string): ReturnType<typeof startReplay>;
  cancel(id: string): ReturnType<typeof cancelReplay>;
  /** As the API shows it. */
  read(id: string): Promise<any>;
  watch: GoOnWithReplaysDeps;
  /** Takes the steps that are due, a quarter of a second after the last. */
  goOn(deps?: GoOnWithReplaysDeps): Promise<boolean>;
  /** Goes on until the replay has ended; what it makes succeeds at once. */
  finish(id: string): Promise<any>;
  /** Names of what the replays made, in the order of the lane, or of events. */
  made(): Promise<Record<string, any>[]>;
  rung: DeliveryCall[];
}

interface End {
  status: string;
  outcome: string;
  errorClass: string | null;
  at: number;
}

/** An endpoint with deliveries that have ended, whose replays go on when a test says so. */
export async function createReplayFixture(endpoint: Record<string, unknown> = {}): Promise<ReplayFixture> {
  const scene = await createLaneFixture({ ordering_mode: "unordered", ...endpoint });
  const { tenant, db, context } = scene;
  const principal = { tenantId: tenant.id, scope: "admin" as const, sourceId: null };
  const shard = { ...shardDeps(tenant, context, withoutLanes), callWatchdog: () => {}, now: scene.now };
  const real = composeWatch(env as Env, context.context, tenant.shard);
  const rung: DeliveryCall[] = [];
  const watch: GoOnWithReplaysDeps = {
    ...real,
    now: scene.now,
    sleep: async (ms) => scene.forward(ms),
    ringLater: (calls) => void rung.push(...calls),
    wakeLane: () => {},
    async listDueReplayParts(now) {
      const parts = await real.listDueReplayParts(now, EVERYTHING);
      return parts.filter(({ tenantId }) => tenantId === tenant.id);
    },
    logFault: (what, error) => {
      throw new Error(what, { cause: error });
    },
  };

  const fixture: ReplayFixture = Object.assign(scene, {
    async endAll(names: string[], end?: Partial<End>) {
      const ids = await scene.publishAll(names);
      await fixture.end(ids, end);
      return ids;
    },
    async end(
      ids: string[],
      { status = "dead_letter", outcome = "rejected", errorClass = "http_4xx", at = Date.now() - 1 }: Partial<End> = {},
    ) {
      const refs = ids.map((id) => {
        const ref = parseDeliveryId(id);
        if (!ref.ok) throw new Error(id);
        return [ref.value.eventId, ref.value.endpointId, ref.value.replayNo];
      });
      await db
        .prepare(
          `update delivery set status = ?3, final_outcome = ?4, last_error_class = ?5, terminal_at = ?6, next_attempt_at = null,
             created_at = min(created_at, ?6)
           where tenant_id = ?1 and (event_id, endpoint_id, replay_no) in (
             select value ->> 0, value ->> 1, value ->> 2 from json_each(?2))`,
        )
        .bind(tenant.id, JSON.stringify(refs), status, outcome, errorClass, at)
        .run();
    },
    ask: (body: Record<string, unknown>) => createReplay(shard, principal, body),
    start: (id: string) => startReplay(shard, principal, id),
    cancel: (id: string) => cancelReplay(shard, principal, id),
    read: async (id: string) => (await tenant.api.get(`/v1/replays/${id}`)).body,
    watch,
    async goOn(deps = watch) {
      scene.forward(300);
      return goOnWithReplays(deps);
    },
    async finish(id: string) {
      for (;;) {
        const replay = await fixture.read(id);
        if (replay.state !== "running") return replay;
        await fixture.goOn();
        await db
          .prepare(
            `update delivery set status = 'succeeded', final_outcome = 'delivered', terminal_at = ?2, next_attempt_at = null
             where tenant_id = ?1 and replay_no > 0 and status = 'pending'`,
          )
          .bind(tenant.id, scene.now())
          .run();
      }
    },
    async made() {
      const { results } = await db
        .prepare(
          "select * from delivery where tenant_id = ? and replay_no > 0 order by lane_position, event_id, replay_no",
        )
        .bind(tenant.id)
        .all<Record<string, any>>();
      return results;
    },
    rung,
  });
  return fixture;
}
