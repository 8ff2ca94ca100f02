import { createHmac } from "node:crypto";
import { decodeBase64 } from "../../../src/core/base64.ts";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import type { OutboundAnswer, Send } from "./context.ts";
import type { Behaviour, Model, Received } from "./model.ts";
import type { Sqlite } from "./sqlite.ts";
import type { Isolate } from "./isolate.ts";
import type { World } from "./world.ts";

type Request = Parameters<Send["begin"]>[0];

/** The consumers of a history. They look at every request as it comes in, and at the ledger behind it. */
export function createReceiver(world: World, model: Model, db: Sqlite): Send {
  const seen = new WeakMap<Request, Received>();
  return {
    begin(request, from, leftAt, answer) {
      world.requests++;
      const received = look(world, model, db, request, from, leftAt);
      if (received) seen.set(request, received);
      const behaviour = received ? model.endpoint(received.endpointId).behaviour : "ok";
      const { tookMs, answered, ...outbound } = reply(world, behaviour, request.timeoutMs);
      world.log(`→ ${received?.deliveryId ?? request.url} #${received?.attempt ?? 0}: ${behaviour}`);
      world.at(world.now + tookMs, null, `${behaviour} answers`, () => {
        if (received) {
          received.endedAt = world.now;
          // Whatever the relay hears of it, the consumer may have acted.
          received.answered = answered;
        }
        answer(outbound);
      });
    },
    told(request) {
      const received = seen.get(request);
      if (received) received.toldAt = world.now;
    },
  };
}

const status = (code: number, headers: [string, string][] = []): OutboundAnswer => ({
  wire: { kind: "response", status: code, bodyComplete: true },
  bodySha256: null,
  headers,
});

function reply(
  { chance }: World,
  behaviour: Behaviour,
  timeoutMs: number,
): OutboundAnswer & { tookMs: number; answered: "success" | "failure" } {
  const fast = chance.int(1, 60);
  switch (behaviour) {
    case "ok":
      return { ...status(200), tookMs: fast, answered: "success" };
    case "slow":
      return { ...status(204), tookMs: chance.int(200, timeoutMs - 50), answered: "success" };
    case "error":
      return { ...status(503), tookMs: fast, answered: "failure" };
    case "busy":
      return { ...status(429, [["Retry-After", "2"]]), tookMs: fast, answered: "failure" };
    case "reject":
      return { ...status(422), tookMs: fast, answered: "failure" };
    case "gone":
      return { ...status(410), tookMs: fast, answered: "failure" };
    case "hang":
      return { ...status(0), wire: { kind: "timeout", status: null }, tookMs: timeoutMs, answered: "failure" };
    case "reset":
      return {
        ...status(0),
        wire: { kind: "thrown", message: "Network connection lost." },
        tookMs: fast,
        answered: "failure",
      };
    case "flaky":
      return reply(
        { chance } as World,
        chance.pick(["ok", "ok", "error", "slow", "hang", "reset"] as const),
        timeoutMs,
      );
  }
}

/** Everything that must hold when a request begins. */
function look(
  world: World,
  model: Model,
  db: Sqlite,
  request: Request,
  from: Isolate,
  leftAt: number,
): Received | null {
  const headers = new Map(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const deliveryId = headers.get("x-webhook-delivery-id")!;
  const attempt = Number(headers.get("x-webhook-attempt"));
  const ref = parseDeliveryId(deliveryId);
  if (!ref.ok) {
    model.violate(`request of no delivery: ${deliveryId}`);
    return null;
  }
  const { eventId, endpointId, replayNo } = ref.value;
  const name = `${eventId.slice(-6)}@${endpointId.slice(-3)}${replayNo > 0 ? `r${replayNo}` : ""} #${attempt}`;
  const [row] = db.rows(
    `select d.status, d.terminal_at, d.lane_key, d.attempt_count, a.requested_at, a.outcome_class, a.error_class,
       a.endpoint_revision, e.ordering_key, w.ordering_mode, w.concurrency_cap, w.rate_limit_per_second, ep.revision
     from delivery d
     left join attempt a on a.tenant_id = d.tenant_id and a.event_id = d.event_id and a.endpoint_id = d.endpoint_id
       and a.replay_no = d.replay_no and a.attempt_number = ?4
     cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
     cross join endpoint ep on ep.tenant_id = d.tenant_id and ep.id = d.endpoint_id
     left join settings w on w.endpoint_id = d.endpoint_id and w.revision = a.endpoint_revision
     where d.event_id = ?1 and d.endpoint_id = ?2 and d.replay_no = ?3 and d.tenant_id = ep.tenant_id`,
    eventId,
    endpointId,
    replayNo,
    attempt,
  );
  const received: Received = {
    deliveryId,
    eventId,
    endpointId,
    replayNo,
    attempt,
    from,
    startedAt: world.now,
    leftAt,
    endedAt: null,
    revision: row?.["endpoint_revision"] ?? 0,
    mode: row?.["ordering_mode"] ?? null,
    cap: row?.["concurrency_cap"] ?? null,
    rate: row?.["rate_limit_per_second"] ?? null,
    orderingKey: row?.["ordering_key"] ?? null,
    answered: null,
    toldAt: null,
  };
  if (!row || row["requested_at"] === null) {
    model.violate(`request without a record: ${name}`);
    return received;
  }
  // The success of an earlier attempt, told late, ends a delivery and this attempt whatever is on its way.
  const isOvertaken = row["status"] === "succeeded" && row["terminal_at"] >= world.now - MAX_CLAIM_AGE_MS;
  const erasedAt = model.erased.get(eventId) ?? null;
  if (erasedAt !== null && row["requested_at"] > erasedAt) model.violate(`request of what was erased: ${name}`);
  const isOpen = row["outcome_class"] === null || (row["error_class"] === "abandoned" && isOvertaken);
  if (!isOpen) model.violate(`request of a closed attempt: ${name} ${row["error_class"]}`);
  if (row["terminal_at"] !== null && !isOvertaken) model.violate(`request after the end: ${name}`);
  const before = model.received.filter((one) => one.deliveryId === deliveryId);
  for (const one of before) {
    const isKnown =
      one.toldAt !== null && one.answered === "success" && one.from.alive && one.toldAt < row["requested_at"];
    if (isKnown && !world.isExcused(one.toldAt!, one.from)) model.violate(`request after a known success: ${name}`);
  }
  lookAtOrder(model, db, received, row, name, new TextDecoder().decode(request.body));
  lookAtLimits(model, db, received, name);
  lookAtContent(model, request, headers, received, row["revision"] === row["endpoint_revision"], name);
  model.see(received, headers.get("webhook-id")!);
  return received;
}

/** A claim is acted on by then, or never. */
const MAX_CLAIM_AGE_MS = 15_000;

function lookAtOrder(
  model: Model,
  db: Sqlite,
  received: Received,
  row: Record<string, any>,
  name: string,
  body: string,
): void {
  const { eventId, endpointId, replayNo } = received;
  const mode = row["ordering_mode"] as string | null;
  for (const other of model.inFlight(endpointId)) {
    // A success that was told late ends a delivery while its next attempt is under way.
    if (isOver(db, other)) continue;
    // Of two the later settings say what the one has to do with the other; those of the mode before say nothing of it.
    const { mode: present } = newest([received, other]);
    // By its event's key, since a change of mode may have given the row another lane in the meantime.
    const isOfLane =
      present === "strict" ||
      (present === "keyed" && received.orderingKey !== null && other.orderingKey === received.orderingKey);
    if (isOfLane) model.violate(`two at a time in one lane: ${name} beside ${other.deliveryId} #${other.attempt}`);
  }
  const isOrdered = mode === "strict" || (mode === "keyed" && row["ordering_key"] !== null);
  if (!isOrdered) return;
  if (replayNo > 0) return;
  const before = model.before(eventId, body);
  const open = db.rows(
    `select d.event_id, e.ordering_key from delivery d cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id
     where d.endpoint_id = ? and d.replay_no = 0 and d.terminal_at is null`,
    endpointId,
  );
  for (const other of open) {
    const isOfLane = mode === "strict" || other["ordering_key"] === row["ordering_key"];
    if (isOfLane && before.has(other["event_id"])) model.violate(`out of order: ${name} before ${other["event_id"]}`);
  }
}

/** Of these the one that was claimed under the latest settings; the first of several. */
const newest = (all: Received[]) => all.reduce((one, other) => (other.revision > one.revision ? other : one));

function isOver(db: Sqlite, { eventId, endpointId, replayNo }: Received): boolean {
  const key = [eventId, endpointId, replayNo];
  return (
    db.rows(
      "select 1 from delivery where event_id = ? and endpoint_id = ? and replay_no = ? and status = 'succeeded'",
      ...key,
    ).length > 0
  );
}

function lookAtLimits(model: Model, db: Sqlite, received: Received, name: string): void {
  const others = model.inFlight(received.endpointId).filter((one) => !one.from.isOld && !isOver(db, one));
  const { cap } = newest([received, ...others]);
  if (cap !== null && !received.from.isOld && others.length + 1 > cap)
    model.violate(`over the cap of ${cap}: ${name} is number ${others.length + 1}`);
  const { rate } = received;
  if (rate === null) return;
  // One of before a deploy may go on beside the one in its place, which knows nothing of it. The limit is the newest one.
  const times = model.received
    .filter((one) => one.endpointId === received.endpointId && one.rate !== null)
    .filter(({ from }) => from === received.from || !(received.from.isOld || from.isOld))
    .map(({ leftAt }) => leftAt);
  const around = [...times, received.leftAt]
    .filter((at) => Math.abs(at - received.leftAt) < 1_000)
    .toSorted((a, b) => a - b);
  if (around.some((at, i) => (around[i + rate] ?? Infinity) - at < 1_000))
    model.violate(`over the rate of ${rate}: ${name}, ${around.map((at) => at - received.leftAt).join(" ")}`);
}

function lookAtContent(
  model: Model,
  request: Request,
  headers: Map<string, string>,
  { eventId, endpointId }: Received,
  isPresent: boolean,
  name: string,
): void {
  const webhookId = headers.get("webhook-id")!;
  if (webhookId !== `msg_${eventId.slice(4)}${endpointId.slice(3)}`) model.violate(`strange webhook-id: ${name}`);
  const body = new TextDecoder().decode(request.body);
  const wanted = model.wanted.find((one) => one.eventId === eventId) ?? model.ofBody(body);
  if (!wanted || !body.includes(wanted.payload)) model.violate(`strange payload: ${name}`);
  const signatures = headers.get("webhook-signature")!.split(" ");
  const signed = `${webhookId}.${headers.get("webhook-timestamp")}.`;
  const { secrets, unknownSecret } = model.endpoint(endpointId);
  const signs = (key: Uint8Array) =>
    signatures.includes(`v1,${createHmac("sha256", key).update(signed).update(body).digest("base64")}`);
  const bySource = signatures.filter((one) => one.startsWith("v1a,")).length;
  if (bySource !== (headers.has("x-webhook-source-id") ? 1 : 0)) model.violate(`${bySource} by the source: ${name}`);
  if (signatures.length - bySource > 2) model.violate(`${signatures.length} signatures: ${name}`);
  // Known to the consumer, and the endpoint has not changed since the claim: the newest signs.
  if (!unknownSecret && !secrets.some(signs)) model.violate(`signed with no secret of its own: ${name}`);
  if (isPresent && !unknownSecret && !signs(secrets.at(-1)!))
    model.violate(`not signed with the newest secret: ${name}`);
}

/** What `whsec_…` stands for. */
export function secretBytes(text: string): Uint8Array {
  const bytes = decodeBase64(text.slice("whsec_".length));
  if (!bytes.ok) throw new Error("strange secret");
  return bytes.value;
}
