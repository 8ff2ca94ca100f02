import type { Ledger, LedgerAttempt, LedgerDelivery } from "./ledger.ts";

/** An event that was acknowledged. `sentAt` and `acknowledgedAt` are places in the order of all that the test's process saw. */
export interface Published {
  /** Its idempotency key, and its payload. */
  key: string;
  eventId: string;
  /** Sent for the first time; it may have been repeated until it was acknowledged. */
  sentAt: number;
  acknowledgedAt: number;
  /** Key of the event before it in the same batch, whose order is that of its array. */
  behind: string | null;
  owed: { endpointId: string; lane: string | null }[];
}

/** An endpoint, and how many requests it may have under way. */
export interface Target {
  id: string;
  name: string;
  cap: number;
}

/** One request as its receiver saw it, in the same order. */
export interface Visit {
  deliveryId: string;
  /** Where it was sent, and the key in its payload. */
  endpoint: string;
  key: string;
  attempt: number;
  arrivedAt: number;
  /** Null while it is unanswered: for ever, where its relay is dead by then. */
  answeredAt: number | null;
  /** Milliseconds since 1970. */
  answeredAtMs: number | null;
  /** `reset`: the connection was cut instead. */
  answer: 200 | 503 | "reset" | null;
}

export interface Evidence {
  published: Published[];
  visits: Visit[];
  ledger: Pick<Ledger, "deliveries" | "integrity"> & { events: { id: string; key: string }[] };
  targets: Target[];
  /** Milliseconds since 1970. */
  killedAt: number[];
  timeoutMs: number;
}

export interface Verdict {
  lost: number;
  /** Events or deliveries that are in the ledger twice. */
  doubledRows: number;
  /** Requests that were made again though the receiver had not refused the one before. */
  doubled: number;
  /** Those of them before which the receiver had answered with a success. */
  doubledAfterAnswer: number;
  abandoned: number;
  outOfOrder: number;
  /** Events that were held against the order of those before. */
  ordered: number;
  /** The longest that a success lay unrecorded before the kill that lost it. */
  answerToKillMs: number;
  /** Empty where all promises were kept. */
  problems: string[];
}

/** What became of an event in a lane. */
interface Course extends Published {
  firstArrivedAt: number;
  /** Its last answer, or the arrival of its last request where that was not answered. */
  doneAt: number;
}

/** Holds what producers and receivers saw, and what the ledger says once all is settled, against contract §4 and §5. */
export function judge(evidence: Evidence): Verdict {
  const verdict: Verdict = {
    lost: 0,
    doubledRows: 0,
    doubled: 0,
    doubledAfterAnswer: 0,
    abandoned: 0,
    outOfOrder: 0,
    ordered: 0,
    answerToKillMs: 0,
    problems: [],
  };
  const { published, visits, ledger } = evidence;
  const deliveries = judgeRows(evidence, verdict);
  const visitsOf = Map.groupBy(visits, ({ deliveryId }) => deliveryId);
  const known = new Set(ledger.deliveries.map(({ id }) => id));
  for (const id of visitsOf.keys())
    if (!known.has(id)) verdict.problems.push(`${id} was received and is not on record`);

  const lanes = new Map<string, Course[]>();
  const laneOf = new Map<string, string>();
  for (const event of published) {
    for (const { endpointId, lane } of event.owed) {
      const delivery = deliveries.get(`${event.eventId} ${endpointId}`);
      const received = delivery === undefined ? [] : (visitsOf.get(delivery.id) ?? []);
      if (delivery?.status !== "succeeded" || received.length === 0) {
        verdict.lost++;
        verdict.problems.push(
          `lost: ${event.key} at ${endpointId}: ${delivery?.id} is ${delivery?.status}, received ${received.length} times`,
        );
        continue;
      }
      if (received.some(({ key }) => key !== event.key)) verdict.problems.push(`${delivery.id} is not ${event.key}`);
      if (lane === null) continue;
      laneOf.set(delivery.id, lane);
      const firstArrivedAt = Math.min(...received.map(({ arrivedAt }) => arrivedAt));
      const doneAt = Math.max(...received.map(({ arrivedAt, answeredAt }) => answeredAt ?? arrivedAt));
      const course = { ...event, firstArrivedAt, doneAt };
      if (lanes.get(lane)?.push(course) === undefined) lanes.set(lane, [course]);
    }
  }
  for (const delivery of ledger.deliveries) {
    const problem = judgeAttempts(delivery, visitsOf.get(delivery.id) ?? [], evidence, verdict);
    if (problem !== null) verdict.problems.push(`${delivery.id}: ${problem}: ${JSON.stringify(delivery.attempts)}`);
  }
  for (const [lane, events] of lanes) judgeOrder(lane, events, verdict);
  judgeUnderWay(evidence, laneOf, verdict);
  return verdict;
}

/** One event a key, and one delivery an event and endpoint that is owed one. Gives back the deliveries by both. */
function judgeRows({ published, ledger }: Evidence, verdict: Verdict): Map<string, LedgerDelivery> {
  const { events, deliveries, integrity } = ledger;
  if (integrity !== "ok") verdict.problems.push(`the database is damaged: ${integrity}`);
  const eventIds = new Map(events.map(({ id, key }) => [key, id]));
  for (const { key, eventId } of published) {
    if (eventIds.get(key) !== eventId) verdict.problems.push(`${key}: ${eventId} became ${eventIds.get(key)}`);
  }
  const byPair = new Map(deliveries.map((delivery) => [`${delivery.eventId} ${delivery.endpointId}`, delivery]));
  verdict.doubledRows = events.length - eventIds.size + deliveries.length - byPair.size;
  if (verdict.doubledRows > 0) verdict.problems.push(`${verdict.doubledRows} events or deliveries are there twice`);
  const owed = published.reduce((sum, event) => sum + event.owed.length, 0);
  if (eventIds.size !== published.length || byPair.size !== owed) {
    verdict.problems.push(
      `${published.length} events were acknowledged, which owe ${owed} deliveries; there are ${eventIds.size} and ${byPair.size}`,
    );
  }
  return byPair;
}

/** Whether record and receiver agree on each request of a delivery. Says what is wrong, null for nothing. */
function judgeAttempts(
  { attempts, attemptCount }: LedgerDelivery,
  visits: Visit[],
  { killedAt, timeoutMs }: Evidence,
  verdict: Verdict,
): string | null {
  if (attempts.length !== attemptCount) return `there are ${attempts.length} attempts of ${attemptCount}`;
  const visitOf = new Map(visits.map((visit) => [visit.attempt, visit]));
  if (visitOf.size !== visits.length) return "one attempt was requested twice";
  const last = Math.max(...visitOf.keys());
  for (const [i, attempt] of attempts.entries()) {
    if (attempt.number !== i + 1) return "its attempts are not numbered from 1 on";
    const visit = visitOf.get(attempt.number);
    visitOf.delete(attempt.number);
    const next = attempts[i + 1];
    const problem =
      attempt.errorClass === "abandoned"
        ? judgeAbandoned(attempt, next, killedAt)
        : judgeRecorded(attempt, visit, next === undefined, timeoutMs);
    if (problem !== null) return `attempt ${attempt.number} ${problem}; it was answered ${visit?.answer}`;
    if (attempt.errorClass !== "abandoned") continue;
    verdict.abandoned++;
    if (visit === undefined || visit.attempt === last || visit.answer === 503 || visit.answer === "reset") continue;
    verdict.doubled++;
    const kill = killedAt.find((at) => at >= attempt.requestedAt)!;
    if (visit.answer !== 200 || visit.answeredAtMs! > kill) continue;
    verdict.doubledAfterAnswer++;
    verdict.answerToKillMs = Math.max(verdict.answerToKillMs, kill - visit.answeredAtMs!);
  }
  return visitOf.size === 0 ? null : `${[...visitOf.keys()].join()} was requested without a record of it`;
}

/** Only a process that died between a claim and its record leaves one behind. */
function judgeAbandoned(attempt: LedgerAttempt, next: LedgerAttempt | undefined, killedAt: number[]): string | null {
  if (attempt.outcomeClass !== "unreachable" || attempt.statusCode !== null) return "is abandoned and has an outcome";
  if (next === undefined) return "is abandoned and the last";
  const wasKilled = killedAt.some((at) => at >= attempt.requestedAt && at <= next.requestedAt);
  return wasKilled ? null : "is abandoned by a relay that was not killed";
}

/** What is on record is what was answered, and nothing more is requested after a success. */
function judgeRecorded(
  { outcomeClass, errorClass, statusCode, latencyMs }: LedgerAttempt,
  visit: Visit | undefined,
  isLast: boolean,
  timeoutMs: number,
): string | null {
  const record = `is ${outcomeClass}, ${errorClass}, ${statusCode} on record`;
  if (visit === undefined) return `${record} and was not received`;
  if ((outcomeClass === "success") !== isLast) return `${record} and is ${isLast ? "" : "not "}the last`;
  if (outcomeClass === "success" || outcomeClass === "transient") return statusCode === visit.answer ? null : record;
  if (outcomeClass !== "unreachable") return record;
  if (errorClass !== "timeout") return visit.answer === "reset" ? null : record;
  return latencyMs !== null && latencyMs >= timeoutMs ? null : `${record} after ${latencyMs} ms`;
}

/** What a kill cut off was under way at once: no more than one of a lane, and no more of an endpoint than its cap. */
function judgeUnderWay({ ledger, killedAt, targets }: Evidence, laneOf: Map<string, string>, verdict: Verdict): void {
  const caps = new Map(targets.map(({ id, cap }) => [id, cap]));
  const counts = new Map<string, number>();
  for (const { id, endpointId, attempts } of ledger.deliveries) {
    for (const { errorClass, requestedAt } of attempts) {
      if (errorClass !== "abandoned") continue;
      const kill = killedAt.findIndex((at) => at >= requestedAt) + 1;
      const places: [string, number | undefined][] = [[endpointId, caps.get(endpointId)]];
      const lane = laneOf.get(id);
      if (lane !== undefined) places.push([lane, 1]);
      for (const [place, most] of places) {
        const at = `${place} at kill ${kill}`;
        const count = (counts.get(at) ?? 0) + 1;
        counts.set(at, count);
        if (count > (most ?? Infinity)) verdict.problems.push(`${count} requests were under way of ${at}`);
      }
    }
  }
}

/** If A was acknowledged before B was sent, or stands before it in a batch, no request of B comes before the last of A. */
function judgeOrder(lane: string, events: Course[], verdict: Verdict): void {
  const courseOf = new Map(events.map((event) => [event.key, event]));
  const acknowledged = events.toSorted((a, b) => a.acknowledgedAt - b.acknowledgedAt);
  let passed = 0;
  let latest: Course | undefined;
  for (const event of events.toSorted((a, b) => a.sentAt - b.sentAt)) {
    for (; acknowledged[passed]!.acknowledgedAt < event.sentAt; passed++) {
      if (latest === undefined || acknowledged[passed]!.doneAt > latest.doneAt) latest = acknowledged[passed];
    }
    const befores = [latest, courseOf.get(event.behind ?? "")].filter((before) => before !== undefined);
    if (befores.length > 0) verdict.ordered++;
    const overtaken = befores.find(({ doneAt }) => doneAt > event.firstArrivedAt);
    if (overtaken === undefined) continue;
    verdict.outOfOrder++;
    verdict.problems.push(`out of order at ${lane}: ${event.key} arrived before ${overtaken.key} had ended`);
  }
}
