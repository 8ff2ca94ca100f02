import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import type { AttemptReport } from "../../../src/app/deliver/report.ts";
import { createLaneState, type LaneDeps, type LaneState } from "../../../src/app/lane/lane-state.ts";
import { pump } from "../../../src/app/lane/pump.ts";
import { authorizePublisher } from "../../../src/app/publish/publish-config.ts";
import { publishEvents } from "../../../src/app/publish/publish-events.ts";
import { composeLane } from "../../../src/compose.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import type { Endpoint } from "../../../src/core/model.ts";
import { createRerouteLedger } from "../../../src/storage/ledger/reroute.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { shardDeps } from "../support/worker.ts";

/** No lane but those that a test makes, and no consumer: a wake of the real object is lost, and so is a retry's ring. */
export const withoutLanes = {
  ...(env as Env),
  LANES: { idFromName: () => null, get: () => ({ wake: async () => {} }) },
  RETRIES: { sendBatch: async () => {} },
} as unknown as Env;

export interface SentRequest {
  /** What the event was called when it was published. */
  name: string;
  key: string;
  attempt: number;
  /** Whose lane made it. */
  by: string;
  startedAt: number;
  endedAt: number | null;
}

export interface LaneFixture extends Scene {
  /** Publishes events in one request, each called `<key>/<n>`; a key of "" is none. */
  publishAll(names: string[]): Promise<string[]>;
  /** The clock of all lanes of this fixture; it goes with the real one, and jumps when a test says so. */
  now(): number;
  forward(ms: number): void;
  sent: SentRequest[];
  /** Reports that were left to the outcomes queue. */
  reports: AttemptReport[];
  /** Null when there is none within the timeout. */
  answer: (request: SentRequest) => Promise<Response | null> | Response | null;
  createLane(by?: string, generation?: number, wrap?: (deps: LaneDeps) => LaneDeps): Lane;
  openCount(): Promise<number>;
  /** The rows of the endpoint with their names, in the order of their lanes. */
  rows(): Promise<Record<string, any>[]>;
}

export interface Lane {
  deps: LaneDeps;
  state: LaneState;
  /** Pumps, and waits until all that came of it is done; the moment at which it wants to be pumped again. */
  run(): Promise<number | null>;
}

/** An endpoint with a lane over the real ledger, whose objects a test makes and loses as it likes. */
export async function createLaneFixture(endpoint: Record<string, unknown> = {}): Promise<LaneFixture> {
  const scene = await createScene({ ordering_mode: "strict", ...endpoint });
  const shard = shardDeps(scene.tenant, scene.context, withoutLanes);
  const names = new Map<string, string>();
  const sent: SentRequest[] = [];
  const reports: AttemptReport[] = [];
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;

  const fixture: LaneFixture = {
    ...scene,
    // The real object would be one more, and none of this fixture's.
    deps: { ...scene.deps, wakeLane: () => {} },
    now,
    forward: (ms) => void (aheadMs += ms),
    sent,
    reports,
    answer: () => new Response("ok"),
    async publishAll(wanted) {
      const publisher = await authorizePublisher(shard, { tenantId: scene.tenant.id });
      const items = wanted.map((name) => {
        const key = name.split("/")[0]!;
        return {
          fields: { type: "order.created", source: "orders", ...(key !== "" && { ordering_key: key }) },
          payload: new TextEncoder().encode(JSON.stringify({ name })),
          payloadIsJson: true,
          contentType: "application/json",
          contentEncoding: null,
        };
      });
      const accepted = await publishEvents(shard, publisher, items, null);
      return accepted.map((one, i) => {
        if (one instanceof AppError) throw one;
        names.set(one.id, wanted[i]!);
        return deliveryId({ eventId: one.id, endpointId: scene.endpointId, replayNo: 0 });
      });
    },
    createLane(by = "a", generation = 0, wrap = (deps) => deps) {
      const work = new Set<Promise<unknown>>();
      const deps: LaneDeps = {
        ...composeLane(withoutLanes, scene.context.context, scene.tenant.shard, async () => void (await run())),
        now,
        sleep: async () => {},
        reportsUntil: async () => 0,
        queueReport: async (report) => void reports.push(JSON.parse(JSON.stringify(report))),
        logFault: () => {},
        background: (part) => {
          work.add(part);
          void part.finally(() => work.delete(part));
        },
        async send({ headers }) {
          const request = new Headers(headers);
          const eventId = request.get("X-Webhook-Event-Id")!;
          const name = names.get(eventId) ?? eventId;
          const one: SentRequest = {
            name,
            key: name.split("/")[0]!,
            attempt: Number(request.get("X-Webhook-Attempt")),
            by,
            startedAt: now(),
            endedAt: null,
          };
          sent.push(one);
          const answered = await fixture.answer(one);
          one.endedAt = now();
          if (answered === null) return { wire: { kind: "timeout", status: null }, bodySha256: null, headers: [] };
          const { status } = answered;
          return { wire: { kind: "response", status, bodyComplete: true }, bodySha256: null, headers: [] };
        },
      };
      const wrapped = wrap(deps);
      // An object that has been there for a while.
      const lane = { tenantId: scene.tenant.id, endpointId: scene.endpointId, generation };
      const state = createLaneState(lane, now() - 10_000);
      const run = () => pump(wrapped, state);
      return {
        deps: wrapped,
        state,
        async run() {
          let wakeAt = await run();
          while (work.size > 0) {
            await Promise.all(work);
            wakeAt = await run();
          }
          return wakeAt;
        },
      };
    },
    async openCount() {
      const sql = "select count(*) as n from delivery where endpoint_id = ? and terminal_at is null";
      return (await scene.db.prepare(sql).bind(scene.endpointId).first<number>("n"))!;
    },
    async rows() {
      const { results } = await scene.db
        .prepare("select * from delivery where endpoint_id = ? and tenant_id = ? order by lane_key, lane_position")
        .bind(scene.endpointId, scene.tenant.id)
        .all<Record<string, any>>();
      return results.map((row) => ({ ...row, name: names.get(row["event_id"]) }));
    },
  };
  return fixture;
}

export const patch = async ({ tenant, endpointId }: LaneFixture, change: object) =>
  expect((await tenant.api.patch(`/v1/endpoints/${endpointId}`, change)).status).toBe(200);

export const routingOf = (orderingMode: Endpoint["orderingMode"], route: "queue" | "lane") => ({
  orderingMode,
  route,
  concurrencyCap: null,
  rateLimitPerSecond: null,
  maxHeadHoldSeconds: null,
  onExhausted: "advance" as const,
  timeoutMs: 15_000,
  url: "https://consumer.example/hook",
  name: null,
  payloadFormat: "envelope" as const,
  sourceSignatures: false,
  headers: [],
  disableAfterFailingSeconds: null,
  quarantinedAt: null,
});

/** Changes the mode behind the relay's back: a PATCH would wake the real object. */
export async function reroute(
  fixture: LaneFixture,
  orderingMode: Endpoint["orderingMode"],
  route: "queue" | "lane",
  over: { onExhausted?: "advance" | "block" } = {},
) {
  const { tenant, endpointId } = fixture;
  const revision = (await tenant.api.get(`/v1/endpoints/${endpointId}`)).body.revision;
  const ledger = createRerouteLedger(fixture.db);
  return ledger.changeRouting(
    tenant.id,
    endpointId,
    revision,
    { ...routingOf(orderingMode, route), ...over },
    true,
    fixture.now(),
  );
}

/** Leaves no work behind. */
export const cancelAll = ({ db, endpointId }: LaneFixture) =>
  db
    .prepare("update delivery set status = 'cancelled', terminal_at = 1 where endpoint_id = ? and terminal_at is null")
    .bind(endpointId)
    .run();

/** The names of what is under way by the ledger. */
export const inFlightOf = async (fixture: LaneFixture) =>
  (await fixture.rows()).filter(({ status }) => status === "processing").map(({ name }) => name);

/** Runs one lane after another until nothing is open, and jumps to where the next thing is due. */
export async function drain(fixture: LaneFixture, next: () => Lane[], maxRounds = 200): Promise<void> {
  for (let round = 0; round < maxRounds; round++) {
    let wakeAt = Infinity;
    for (const lane of next()) wakeAt = Math.min(wakeAt, (await lane.run()) ?? Infinity);
    if ((await fixture.openCount()) === 0) return;
    if (wakeAt === Infinity) throw new Error("Deliveries are open and no lane asks to be pumped.");
    fixture.forward(Math.max(0, wakeAt - fixture.now()) + 1);
  }
  throw new Error("Deliveries are still open.");
}

/** What an ordered lane promises, read from the requests; empty when it was kept. */
export function brokenPromises(sent: SentRequest[], names: string[]): string[] {
  const broken: string[] = [];
  for (const [key, ofKey] of Map.groupBy(names, (name) => name.split("/")[0]!)) {
    const requests = sent.filter((request) => request.key === key);
    // In order: the first requests come as the events were accepted, and none comes back once a later one has begun.
    const order = requests.map(({ name }) => name).filter((name, i, all) => name !== all[i - 1]);
    if (order.join() !== ofKey.join()) broken.push(`${key}: ${order.join()}`);
    for (const [i, request] of requests.entries()) {
      const before = requests[i - 1];
      if (!before) continue;
      // Never two in flight: each has ended before the next begins. One whose object died never ends; its lease does.
      const isBeside = before.endedAt !== null && before.endedAt > request.startedAt;
      if (isBeside) broken.push(`${request.name}: two in flight`);
      if (before.name === request.name && request.attempt <= before.attempt) broken.push(`${request.name}: made twice`);
    }
  }
  return broken;
}

export { createRandom } from "../../support/random.ts";
