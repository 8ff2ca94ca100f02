import { createEndpoint, type TestTenant } from "../client.ts";
import type { Handler, Receiver } from "../receiver.ts";
import { randomOf } from "./random.ts";
import type { Published, Target, Visit } from "./verdict.ts";

/**
 * Nothing but a kill may spend an attempt, however slow the machine is, so it is long; the lease of an attempt that died is
 * this and half a minute.
 */
export const TIMEOUT_MS = 20_000;
/** Heads that died with a relay take room until their leases end: of one endpoint all that there is, of another never. */
const TIGHT_CAP = 3;
const WIDE_CAP = 64;
/** As many as it takes that the lease of one has ended when its turn comes again. */
const STRICT_ENDPOINTS = 8;
/** Which share of deliveries is refused once, at an endpoint that does. */
const REFUSED = 0.15;
const MIN_ANSWER_MS = 5;
const MAX_ANSWER_MS = 50;

/** A single counted failure would end a delivery: a crash is not one. Its receiver refuses nothing. */
const STEADY = { max_attempts: 1 };
const FLAKY = { delays_seconds: [0.2], jitter: 0, max_attempts: 50 };

/** `order.<strict endpoint>.<unordered endpoint>`: each event goes to one of either kind, and to keyed ones. */
export interface OrderTarget extends Target {
  mode: "unordered" | "strict" | "keyed";
}

export async function createTargets(tenant: TestTenant, url: string): Promise<OrderTarget[]> {
  const create = async (mode: OrderTarget["mode"], name: string, pattern: string, cap: number | null = null) => {
    const retry_policy = name.endsWith("steady") ? STEADY : FLAKY;
    const settings = { timeout_ms: TIMEOUT_MS, ordering_mode: mode, retry_policy, concurrency_cap: cap ?? undefined };
    const { id } = await createEndpoint(tenant, { url: `${url}/${name}`, ...settings }, pattern);
    return { id, name, mode, cap: mode === "strict" ? 1 : (cap ?? Infinity) };
  };
  const targets = [
    await create("unordered", "unordered-steady", "order.*.steady"),
    await create("unordered", "unordered-flaky", "order.*.flaky"),
    await create("keyed", "keyed-tight-steady", "order.*.steady", TIGHT_CAP),
    await create("keyed", "keyed-wide-flaky", "order.*", WIDE_CAP),
  ];
  for (let n = 0; n < STRICT_ENDPOINTS; n++) {
    const name = `strict-${n}-${n % 2 === 0 ? "steady" : "flaky"}`;
    targets.push(await create("strict", name, `order.strict-${n}.*`));
  }
  return targets;
}

/** Which type an event needs for the nth strict endpoint and one of the unordered ones. */
export const typeFor = (n: number, isSteady: boolean) =>
  `order.strict-${(n + STRICT_ENDPOINTS) % STRICT_ENDPOINTS}.${isSteady ? "steady" : "flaky"}`;

/** What an event of this type owes, and in which lane. */
export function owedOf(targets: OrderTarget[], type: string, orderingKey: string): Published["owed"] {
  const [, strict, unordered] = type.split(".");
  return targets.flatMap(({ id: endpointId, name, mode }): Published["owed"] => {
    if (mode === "strict") return name.startsWith(`${strict}-`) ? [{ endpointId, lane: name }] : [];
    if (name !== "keyed-wide-flaky" && !name.endsWith(`-${unordered}`)) return [];
    return [{ endpointId, lane: mode === "keyed" ? `${name} ${orderingKey}` : null }];
  });
}

/** Called with what happens at the receiver. `hold` leaves a request without an answer. */
export interface Watching {
  requested?: ((visit: Visit) => "hold" | "answer") | undefined;
  answered?: ((visit: Visit) => unknown) | undefined;
}

/** Answers after a moment, and refuses some deliveries once. Everything is written down; `tick` counts what is seen. */
export function startVisits(
  receiver: Receiver,
  seed: number,
  tick: () => number,
): { visits: Visit[]; watch: Watching } {
  const visits: Visit[] = [];
  const refused = new Set<string>();
  const watch: Watching = {};
  const answerOf = (endpoint: string, deliveryId: string, key: string): 200 | 503 | "reset" => {
    const chance = randomOf(seed, `${endpoint} ${key}`);
    if (!endpoint.endsWith("flaky") || chance >= REFUSED || refused.has(deliveryId)) return 200;
    refused.add(deliveryId);
    return chance < REFUSED / 3 ? "reset" : 503;
  };
  const handler: Handler = ({ path, headers, body }, response, raw) => {
    const { key } = JSON.parse(body.toString()).payload;
    const visit: Visit = {
      deliveryId: String(headers["x-webhook-delivery-id"]),
      endpoint: path.slice(1),
      key,
      attempt: Number(headers["x-webhook-attempt"]),
      arrivedAt: tick(),
      answeredAt: null,
      answeredAtMs: null,
      answer: null,
    };
    visits.push(visit);
    if (watch.requested?.(visit) === "hold") return;
    const chance = randomOf(seed, `${visit.deliveryId} ${visit.attempt}`);
    setTimeout(
      () => {
        if (raw.socket.destroyed) return;
        visit.answer = answerOf(visit.endpoint, visit.deliveryId, key);
        visit.answeredAt = tick();
        visit.answeredAtMs = Date.now();
        if (visit.answer === "reset") raw.socket.destroy();
        else response.writeHead(visit.answer).end(() => watch.answered?.(visit));
      },
      MIN_ANSWER_MS + chance * (MAX_ANSWER_MS - MIN_ANSWER_MS),
    );
  };
  receiver.handle(handler);
  return { visits, watch };
}
