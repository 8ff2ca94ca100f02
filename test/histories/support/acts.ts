import { cancelDelivery } from "../../../src/app/delivery/cancel-delivery.ts";
import { replayDelivery } from "../../../src/app/delivery/replay-delivery.ts";
import { retryDelivery } from "../../../src/app/delivery/retry-delivery.ts";
import { createReplay } from "../../../src/app/replay/create-replay.ts";
import { retryPending } from "../../../src/app/endpoint/retry-pending.ts";
import { eraseEventPayload } from "../../../src/app/event/erase-payload.ts";
import { AppError } from "../../../src/app/app-error.ts";
import { rotateSecret } from "../../../src/app/endpoint/rotate-secret.ts";
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  resumeEndpoint,
} from "../../../src/app/endpoint/switch-endpoint.ts";
import { updateEndpoint } from "../../../src/app/endpoint/update-endpoint.ts";
import { moveLane } from "../../../src/app/lane/move-lane.ts";
import { skipHead } from "../../../src/app/lane/skip-head.ts";
import { authorizePublisher } from "../../../src/app/publish/publish-config.ts";
import { publishEvents } from "../../../src/app/publish/publish-events.ts";
import { updateTenant } from "../../../src/app/tenant/update-tenant.ts";
import { deliveryId } from "../../../src/core/ids.ts";
import type { Behaviour, ModelEndpoint, Wanted } from "./model.ts";
import type { Chance } from "./random.ts";
import { secretBytes } from "./receiver.ts";
import type { Relay } from "./relay.ts";
import type { Act } from "./steps.ts";

export const BEHAVIOURS: readonly (readonly [number, Behaviour])[] = [
  [4, "ok"],
  [4, "slow"],
  [4, "error"],
  [1, "busy"],
  [3, "reject"],
  [0.4, "gone"],
  [3, "hang"],
  [2, "reset"],
  [6, "flaky"],
];
const MODES = ["unordered", "strict", "keyed"] as const;
const KEYS = ["a", "b", null] as const;

/** Does one step. Requests to the relay are only begun: they go on with whatever else goes on. */
export async function act(relay: Relay, step: Act, chance: Chance): Promise<void> {
  const { world, model, principal, objects } = relay;
  const endpoint = chance.pick(model.endpoints);
  switch (step) {
    case "publish":
      return publish(relay, [wanted(relay, chance)]);
    case "batch":
      return publish(
        relay,
        Array.from({ length: chance.int(2, 4) }, () => wanted(relay, chance)),
      );
    case "publish again":
      return publishAgain(relay, chance);
    case "behave":
      endpoint.behaviour = chance.weighted(BEHAVIOURS);
      return;
    case "a moment":
      return world.advance(chance.int(1, 400));
    case "seconds":
      return world.advance(chance.int(400, 5_000));
    case "next thing":
      return world.advance(Math.max(0, (world.nextAt() ?? world.now) - world.now));
    case "half a minute":
      return world.advance(chance.int(28_000, 66_000));
    case "ten minutes":
      return world.advance(chance.int(300_000, 660_000));
    case "crash worker":
      return relay.crashWorker();
    case "crash lane":
    case "crash watchdog": {
      const running = objects.running(step === "crash lane" ? "lane" : "watchdog");
      if (running.length > 0) objects.crash(chance.pick(running));
      return;
    }
    case "deploy":
      return relay.deploy();
    case "pause":
      return relay.request((deps) => pauseEndpoint(deps, principal, endpoint.id));
    case "resume":
      return relay.request((deps) => resumeEndpoint(deps, principal, endpoint.id));
    case "disable":
      return relay.request((deps) => disableEndpoint(deps, principal, endpoint.id));
    case "enable":
      return relay.request((deps) => enableEndpoint(deps, principal, endpoint.id));
    case "change mode": {
      const change = { ordering_mode: chance.pick(MODES), ...(chance.next() < 0.5 && limits(chance)) };
      return relay.request((deps) => updateEndpoint(deps, principal, endpoint.id, change));
    }
    case "change limits": {
      const change = limits(chance);
      return relay.request((deps) => updateEndpoint(deps, principal, endpoint.id, change));
    }
    case "change settings": {
      const change = settings(chance);
      return relay.request((deps) => updateEndpoint(deps, principal, endpoint.id, change));
    }
    case "move lane":
      return relay.request((deps) => moveLane(deps, principal, endpoint.id));
    case "rotate":
      return rotate(relay, endpoint);
    case "retry":
    case "replay":
    case "cancel":
      return actOnDelivery(relay, step, chance);
    case "erase":
      return erase(relay, chance);
    case "retry all":
      return relay.request((deps) => retryPending(deps, principal, endpoint.id, {}));
    case "bulk replay": {
      const filter = { endpoint_id: endpoint.id, ...(chance.next() < 0.5 && { status: "dead_letter" }) };
      const body = { filter, include_replayed: chance.next() < 0.5 };
      return relay.request((deps) => createReplay(deps, principal, body));
    }
    case "skip":
      return skip(relay, chance);
    case "suspend":
    case "activate":
      return relay.operate((deps) =>
        updateTenant(deps, principal.tenantId, { status: step === "suspend" ? "suspended" : "active" }),
      );
    case "ledger away":
      world.away.d1 = world.now + chance.int(200, chance.next() < 0.3 ? 90_000 : 8_000);
      world.outages.push({ from: world.now, to: world.away.d1 });
      return;
    case "payloads away":
      world.away.r2 = world.now + chance.int(200, 20_000);
      return;
    case "queues away":
      world.away.queue = world.now + chance.int(200, 30_000);
  }
}

export const limits = (chance: Chance) => ({
  concurrency_cap: chance.pick([null, 1, 2, 3]),
  rate_limit_per_second: chance.pick([null, null, null, 1, 2, 5]),
});

const settings = (chance: Chance) =>
  chance.pick<Record<string, unknown>>([
    { on_exhausted: "block" },
    { on_exhausted: "advance" },
    { url: `https://r${chance.int(1, 99)}.example/hook` },
    { timeout_ms: chance.pick([1_000, 2_000, 21_000]) },
    { max_head_hold_seconds: chance.pick([null, null, 60]) },
    { retry_policy: { max_attempts: chance.int(1, 4) } },
    { headers: { "X-Team": String(chance.int(1, 9)) } },
  ]);

function wanted({ model }: Relay, chance: Chance): Wanted {
  const name = `event ${model.wanted.length}`;
  const one: Wanted = {
    name,
    orderingKey: chance.pick(KEYS),
    idempotencyKey: chance.next() < 0.4 ? name.replace(" ", "-") : null,
    payload: JSON.stringify({ name }),
    firstSentAt: 0,
    acknowledgedAt: null,
    eventId: null,
    madeBy: null,
  };
  model.wanted.push(one);
  return one;
}

/** A producer that was not answered asks again under the same key; so does one that was; and some take a key for something else. */
function publishAgain(relay: Relay, chance: Chance): void {
  const keyed = relay.model.wanted.filter(({ idempotencyKey }) => idempotencyKey !== null);
  if (keyed.length === 0) return;
  const one = chance.pick(keyed);
  if (chance.next() < 0.2) {
    const other = { ...wanted(relay, chance), idempotencyKey: one.idempotencyKey };
    relay.model.wanted[relay.model.wanted.length - 1] = other;
    return publish(relay, [other]);
  }
  publish(relay, [one]);
}

function publish(relay: Relay, batch: Wanted[]): void {
  const { model, principal, world } = relay;
  const sentAt = ++model.moment;
  // No answer goes to a producer and comes back as its next request within a millisecond.
  world.now++;
  for (const one of batch) if (one.firstSentAt === 0) one.firstSentAt = sentAt;
  const items = batch.map((one) => ({
    fields: {
      type: "order.created",
      source: "orders",
      ...(one.orderingKey !== null && { ordering_key: one.orderingKey }),
      ...(one.idempotencyKey !== null && { idempotency_key: one.idempotencyKey }),
    },
    payload: new TextEncoder().encode(one.payload),
    payloadIsJson: true,
    contentType: "application/json",
    contentEncoding: null,
  }));
  relay.request(
    async (deps) => publishEvents(deps, await authorizePublisher(deps, { tenantId: principal.tenantId }), items, null),
    (results) => {
      for (const [i, result] of results.entries()) {
        if (!(result instanceof AppError)) model.acknowledge(batch[i]!, result.id, result.duplicate ? null : sentAt);
      }
    },
  );
}

function rotate({ request, principal }: Relay, endpoint: ModelEndpoint): void {
  // Of two at once nobody outside can tell which was made last.
  if (endpoint.rotating > 0) endpoint.unknownSecret = true;
  endpoint.rotating++;
  request(
    (deps) => rotateSecret(deps, principal, endpoint.id, { force: true }),
    ({ text }) => {
      endpoint.rotating--;
      endpoint.secrets.push(secretBytes(text));
    },
    // Whether it took effect is not known, and neither is the secret.
    () => {
      endpoint.rotating--;
      endpoint.unknownSecret = true;
    },
  );
}

function actOnDelivery(
  { request, db, principal, model }: Relay,
  step: "retry" | "replay" | "cancel",
  chance: Chance,
): void {
  const rows = db.rows(
    `select event_id, endpoint_id, replay_no from delivery where ${step === "replay" ? "terminal_at is not null" : "status = 'pending'"}`,
  );
  if (rows.length === 0) return;
  const row = chance.pick(rows);
  const id = deliveryId({ eventId: row["event_id"], endpointId: row["endpoint_id"], replayNo: row["replay_no"] });
  if (step === "cancel") model.cancelled.add(`${row["event_id"]} ${row["endpoint_id"]} ${row["replay_no"]}`);
  request((deps): Promise<unknown> => {
    if (step === "retry") return retryDelivery(deps, principal, id);
    return step === "cancel" ? cancelDelivery(deps, principal, id) : replayDelivery(deps, principal, id, {});
  });
}

function erase({ request, model, principal, world }: Relay, chance: Chance): void {
  const ids = model.wanted.flatMap(({ eventId }) => eventId ?? []);
  if (ids.length === 0) return;
  const id = chance.pick(ids);
  if (!model.erased.has(id)) model.erased.set(id, null);
  request(
    (deps) => eraseEventPayload(deps, principal, id),
    () => model.erased.set(id, model.erased.get(id) ?? world.now),
  );
}

/** Lets a blocked lane go on: without its head, or with that again. */
export function skip({ request, db, principal }: Relay, chance: Chance): void {
  const blocks = db.rows("select event_id, endpoint_id, replay_no from lane_block");
  if (blocks.length === 0) return;
  const block = chance.pick(blocks);
  const endpointId = block["endpoint_id"] as string;
  const id = deliveryId({ eventId: block["event_id"], endpointId, replayNo: block["replay_no"] });
  const isReplay = chance.next() < 0.4;
  request((deps): Promise<unknown> =>
    isReplay ? replayDelivery(deps, principal, id, {}) : skipHead(deps, principal, endpointId, { delivery_id: id }),
  );
}
