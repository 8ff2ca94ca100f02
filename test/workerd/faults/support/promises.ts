import { deliveryId } from "../../../../src/core/ids.ts";
import type { Scene } from "./scene.ts";

export interface Expected {
  /** How each delivery may have ended; `succeeded` unless said otherwise. By the event's name, `*` for all others. */
  ends?: Record<string, string[]>;
  /** Whether first requests come in the order in which events were acknowledged. */
  isStrict?: boolean;
  /** A process died: what it alone knew is lost, and a request whose answer nobody recorded may be made again. */
  isDeath?: boolean;
  /** Replays there may be of one event. */
  maxReplays?: number;
  /** Lane blocks that stay. */
  blocks?: number;
}

type Row = Record<string, any>;
const idOf = (row: Row) =>
  deliveryId({ eventId: row["event_id"], endpointId: row["endpoint_id"], replayNo: row["replay_no"] });

/** What the contract promises (§4 and §5), read off the ledger, the requests and the log; empty when it was kept. */
export async function brokenPromises(scene: Scene, expected: Expected): Promise<string[]> {
  const broken: string[] = [];
  const { deliveries, attempts, events, blocks } = await scene.rows();
  const { requests } = scene.world.receiver;
  const nameOf = new Map(scene.acked.map(({ id, name }) => [id, name]));

  for (const { name, id } of scene.acked) {
    if (!events.some((event) => event["id"] === id)) broken.push(`${name} was acknowledged and is not there`);
  }
  for (const event of events) {
    const own = deliveries.filter((row) => row["event_id"] === event["id"]);
    const first = own.filter((row) => row["replay_no"] === 0).length;
    if (first !== Math.min(event["delivery_count"], 1)) broken.push(`${event["id"]} has ${first} first deliveries`);
    if (own.length > 1 + (expected.maxReplays ?? 0)) broken.push(`${event["id"]} has ${own.length - 1} replays`);
  }
  for (const key of scene.keys) {
    const count = events.filter((event) => event["idempotency_key"] === key).length;
    if (count !== 1) broken.push(`${count} events have the key ${key}`);
  }
  for (const row of deliveries) {
    const id = idOf(row);
    const name = nameOf.get(row["event_id"]) ?? "*";
    const ends = expected.ends?.[name] ?? expected.ends?.["*"] ?? ["succeeded"];
    if (row["terminal_at"] === null) broken.push(`${name} is still ${row["status"]}`);
    else if (!ends.includes(row["status"])) broken.push(`${name} is ${row["status"]} (${row["final_outcome"]})`);
    broken.push(
      ...brokenAttempts(
        name,
        row,
        attempts.filter((attempt) => idOf(attempt) === id),
      ),
    );
    broken.push(...brokenRequests(name, id, attempts, scene, expected));
  }
  for (const [eventId, ofEvent] of Map.groupBy(requests, ({ eventId }) => eventId)) {
    const ids = new Set(ofEvent.map(({ webhookId }) => webhookId));
    if (ids.size > 1) broken.push(`${eventId} had ${ids.size} webhook-ids`);
  }
  broken.push(...brokenOrder(scene, expected.isStrict ?? false));
  if (blocks.length !== (expected.blocks ?? 0)) broken.push(`${blocks.length} lanes are blocked`);
  for (const line of scene.world.log) {
    if (line.startsWith("uncaught") && !line.includes("The world is over")) broken.push(line);
    for (const secret of scene.secrets) if (isTold(line, secret)) broken.push(`the log tells a secret: ${line}`);
  }
  return broken;
}

/** The log holds answers of the API too, which show a new secret this once. */
const isTold = (line: string, secret: string) => line.startsWith("console") && line.includes(secret);

function brokenAttempts(name: string, row: Row, attempts: Row[]): string[] {
  const broken: string[] = [];
  const numbers = attempts.map((attempt) => attempt["attempt_number"]).join();
  const wanted = Array.from({ length: row["attempt_count"] }, (_, i) => i + 1).join();
  if (numbers !== wanted) broken.push(`${name} has the attempts ${numbers || "none"} instead of ${wanted || "none"}`);
  if (row["terminal_at"] === null) return broken;
  for (const attempt of attempts) {
    if (attempt["outcome_class"] === null) broken.push(`attempt ${attempt["attempt_number"]} of ${name} is open`);
  }
  const hasSuccess = attempts.some((attempt) => attempt["outcome_class"] === "success");
  if (row["status"] === "succeeded" && !hasSuccess) broken.push(`${name} succeeded without an attempt that did`);
  if (row["token"] !== null || row["next_attempt_at"] !== null)
    broken.push(`${name} has ended and has a token, or a time`);
  return broken;
}

function brokenRequests(name: string, id: string, attempts: Row[], { world }: Scene, { isDeath }: Expected): string[] {
  const broken: string[] = [];
  const requests = world.receiver.requests.filter(({ deliveryId }) => deliveryId === id);
  // The request itself was on its way for so long: nobody could have held it back.
  const isLate = world.calls.state.struck.some((text) => text.endsWith("Sender send) hangs, and takes effect late"));
  for (const [n, request] of requests.entries()) {
    const what = `request ${request.attempt} of ${name}`;
    if (requests.findIndex(({ attempt }) => attempt === request.attempt) !== n) broken.push(`${what} was made twice`);
    if (!attempts.some((attempt) => idOf(attempt) === id && attempt["attempt_number"] === request.attempt)) {
      broken.push(`${what} is not on record`);
    }
    if (isLate) continue;
    const then = request.open.find((open) => open.id === id);
    if (then?.status !== "processing" || then.attempt_count !== request.attempt) {
      broken.push(
        `${what} was made while its delivery was ${then ? `${then.status} at ${then.attempt_count}` : "ended"}`,
      );
    }
    const { isAfter } = request;
    if (isAfter && !isDeath) broken.push(`${what} was made though ${isAfter.attempt} had got ${isAfter.status}`);
  }
  return broken;
}

/** None is attempted while another of its lane is open before it, or in flight. */
function brokenOrder({ acked, world }: Scene, isStrict: boolean): string[] {
  const broken: string[] = [];
  const firsts = [...new Set(world.receiver.requests.map(({ name }) => name))];
  const wanted = acked.map(({ name }) => name).filter((name) => firsts.includes(name));
  if (isStrict && firsts.filter((name) => wanted.includes(name)).join() !== wanted.join()) {
    broken.push(`first requests came as ${firsts.join()}`);
  }
  for (const { deliveryId: id, attempt, name, open } of world.receiver.requests) {
    const own = open.find((row) => row.id === id);
    if (!own || own.lane_key === null) continue;
    for (const other of open) {
      if (other.id === id || other.lane_key !== own.lane_key) continue;
      if (other.status === "processing") broken.push(`request ${attempt} of ${name} was made beside another`);
      else if (other.lane_position! < own.lane_position!) broken.push(`request ${attempt} of ${name} passed another`);
    }
  }
  return broken;
}
