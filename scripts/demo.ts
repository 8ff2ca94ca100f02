/**
 * `npm run demo`: a relay with a temporary state, three receivers of which one fails now and then and one always, a few
 * events, and the timeline of what became of them. Leaves nothing behind.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPlayground, type ApiCaller } from "./api-caller.ts";
import { startRelay } from "./relay.ts";
import { formatTimeline, type TimelineDelivery } from "./timeline.ts";
import { isSignedWith, startWebhookReceiver, type ReceivedWebhook } from "./webhook-receiver.ts";

type Delivery = TimelineDelivery & { id: string; event_id: string; endpoint_id: string; idempotency_key: string };

const OPERATOR_TOKEN = "demo-operator-token";
const MAX_WAIT_MS = 60_000;
const POLL_MS = 200;
const RETRY_POLICY = { delays_seconds: [1, 2], max_attempts: 3 };
const RECEIVERS = [
  { name: "healthy", pattern: "*", does: "answers 200" },
  { name: "flaky", pattern: "order.*", does: "answers 503 twice for each webhook, then 200" },
  { name: "dead", pattern: "invoice.paid", does: "hangs up on every request" },
];
const EVENTS = [
  { type: "order.created", idempotency_key: "order-1", payload: { order: 1, total: "19.90" } },
  { type: "order.paid", payload: { order: 1 } },
  { type: "invoice.paid", payload: { invoice: 7, order: 1 } },
  { type: "order.created", idempotency_key: "order-1", payload: { order: 1, total: "19.90" } },
];

const secrets = new Map<string, string>();
const requestsOf = new Map<string, number>();
let verified = 0;
let isDeadRepaired = false;

/** The three receivers are paths of one server. */
function answer(webhook: ReceivedWebhook): number | null {
  const webhookId = String(webhook.headers["webhook-id"]);
  const requests = (requestsOf.get(webhookId) ?? 0) + 1;
  requestsOf.set(webhookId, requests);
  if (isSignedWith(secrets.get(webhook.path) ?? "", webhook)) verified++;
  if (webhook.path === "/flaky" && requests <= 2) return 503;
  return webhook.path === "/dead" && !isDeadRepaired ? null : 200;
}

async function createEndpoints(call: ApiCaller, receiverUrl: string): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (const { name, pattern } of RECEIVERS) {
    const url = `${receiverUrl}/${name}`;
    const endpoint = await call("POST", "/v1/endpoints", { name, url, retry_policy: RETRY_POLICY });
    await call("POST", "/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: pattern });
    secrets.set(`/${name}`, endpoint.secret);
    names.set(endpoint.id, name);
  }
  return names;
}

/** Publishes them all and says what was answered. Gives the types of the events by id. */
async function publish(call: ApiCaller): Promise<Map<string, string>> {
  const types = new Map<string, string>();
  for (const event of EVENTS) {
    const accepted = await call("POST", "/v1/events", { ...event, source: "orders" });
    const outcome = accepted.duplicate
      ? `duplicate: the idempotency key of ${types.get(accepted.id)} again`
      : `${accepted.delivery_count} deliveries`;
    console.log(`  ${event.type.padEnd(15)}${accepted.id}   ${outcome}`);
    types.set(accepted.id, event.type);
  }
  return types;
}

/** All deliveries of the tenant with their attempts, oldest first, once every one of them has ended. */
async function allEnded(call: ApiCaller): Promise<Delivery[]> {
  const giveUpAt = Date.now() + MAX_WAIT_MS;
  for (;;) {
    const { data } = await call("GET", "/v1/deliveries");
    if (data.every((delivery: { terminal_at: string | null }) => delivery.terminal_at !== null)) {
      return Promise.all(data.toReversed().map(({ id }: { id: string }) => call("GET", `/v1/deliveries/${id}`)));
    }
    if (Date.now() > giveUpAt) throw new Error(`Deliveries are still open after ${MAX_WAIT_MS / 1000} s.`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function tellTheStory(relayUrl: string, receiverUrl: string): Promise<void> {
  const { call } = await createPlayground(relayUrl, OPERATOR_TOKEN, "demo");
  const endpoints = await createEndpoints(call, receiverUrl);
  console.log(`Hooklane is up on ${relayUrl}, with three receivers:\n`);
  for (const { name, pattern, does } of RECEIVERS) {
    console.log(`  ${name.padEnd(10)}subscribed to ${pattern.padEnd(14)}${does}`);
  }
  console.log("\nEvents are published. Each was answered only once it was stored with its deliveries:\n");
  const types = await publish(call);
  const title = ({ event_id, endpoint_id }: Delivery) => `${types.get(event_id)} to ${endpoints.get(endpoint_id)}`;

  console.log("\nRetries take a few seconds …");
  const ended = await allEnded(call);
  const byReceiver = ended.toSorted((a, b) => nameOrder(endpoints, a) - nameOrder(endpoints, b));
  console.log("What became of them, timed from the moment the event was accepted:");
  for (const delivery of byReceiver) console.log(`\n${formatTimeline(title(delivery), delivery).join("\n")}`);

  isDeadRepaired = true;
  const deadLetter = ended.find(({ status }) => status === "dead_letter")!;
  const { id } = await call("POST", `/v1/deliveries/${deadLetter.id}/replay`);
  const replay = (await allEnded(call)).find((delivery) => delivery.id === id)!;
  const webhookId = replay.idempotency_key === deadLetter.idempotency_key ? "the same webhook-id" : "a new webhook-id";
  console.log(`\nThe dead receiver is repaired, and the dead letter replayed with ${webhookId}:`);
  console.log(`\n${formatTimeline(`${title(replay)}, replay`, replay).join("\n")}`);

  const requests = [...requestsOf.values()].reduce((sum, count) => sum + count, 0);
  console.log(`\nThe receivers got ${requests} requests; the standardwebhooks package verified ${verified} of them.`);
}

function nameOrder(endpoints: Map<string, string>, { endpoint_id }: Delivery): number {
  return RECEIVERS.findIndex(({ name }) => name === endpoints.get(endpoint_id));
}

const stateDir = mkdtempSync(join(tmpdir(), "hooklane-demo-"));
process.once("exit", () => rmSync(stateDir, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const log: string[] = [];
const [relay, receiver] = await Promise.all([
  startRelay({ port: 0, stateDir, settings: { OPERATOR_TOKEN }, onLog: (line) => log.push(line) }),
  startWebhookReceiver(answer),
]);
try {
  await tellTheStory(relay.url, receiver.url);
} catch (error) {
  console.error(log.join("\n"));
  throw error;
} finally {
  await Promise.all([relay.stop(), receiver.close()]);
}
console.log(`
Next:
  npm start           the relay on http://localhost:8787, its state kept
  npm run seed        beside it: a receiver, a key, and three curls to try by hand
  docs/contract.md    what producers and consumers can rely on
  docs/ledger.md      the rows behind a timeline, and SQL to read them`);
