import type { Relay } from "./relay.ts";
import type { Weather } from "./weather.ts";

/** Nothing was written since. */
let lookedAt = 0;

/** After each step: what the monitors saw, and that the parts of the ledger agree. */
export function lookAtRows({ db, model, world }: Relay): void {
  if (db.writes === lookedAt) return;
  lookedAt = db.writes;
  for (const { what } of db.rows("select what from violation")) model.violate(what as string);
  for (const line of world.strange) model.violate(`a fault of the relay: ${line}`);
  for (const { event_id } of db.rows("select event_id from owed_block"))
    model.violate(`its lane is not blocked: ${event_id}`);
  const away = db.rows(
    `select event_id from delivery where status = 'pending' and lane_position <= -1099511627776
       and lane_position > -2199023255552`,
  );
  for (const { event_id } of away) model.violate(`waits where only what is in flight stands: ${event_id}`);
  const disagreeing = db.rows(
    `select d.event_id, d.attempt_count, count(a.attempt_number) as n, max(a.attempt_number) as last
     from delivery d left join attempt a on a.tenant_id = d.tenant_id and a.event_id = d.event_id
       and a.endpoint_id = d.endpoint_id and a.replay_no = d.replay_no
     group by d.tenant_id, d.event_id, d.endpoint_id, d.replay_no
     having n <> d.attempt_count or coalesce(last, 0) <> d.attempt_count
       or (d.status = 'processing') <> (d.token is not null) or (d.status = 'processing') <> (d.locked_until is not null)`,
  );
  const successes = db.rows(
    `select a.event_id from attempt a cross join delivery d on d.tenant_id = a.tenant_id and d.event_id = a.event_id
       and d.endpoint_id = a.endpoint_id and d.replay_no = a.replay_no
     where a.outcome_class = 'success' and d.terminal_at is null`,
  );
  for (const row of successes) model.violate(`a success on record, and its delivery open: ${row["event_id"]}`);
  for (const row of disagreeing)
    model.violate(
      `a delivery and its attempts disagree: ${row["event_id"]} ${row["attempt_count"]} ${row["n"]} ${row["last"]}`,
    );
}

/** At the end: nothing is left, and whatever ended did so for a reason that was seen. */
export function lookAtEnd({ db, model, world, objects }: Relay, weather: Weather): void {
  const rows = db.rows(
    `select d.*, p.policy, e.payload_ref from delivery d
     cross join retry_policy p on p.tenant_id = d.tenant_id and p.id = d.retry_policy_id
     cross join event e on e.tenant_id = d.tenant_id and e.id = d.event_id`,
  );
  const attempts = Map.groupBy(db.rows("select * from attempt"), keyOf);
  const received = Map.groupBy(model.received, (one) => `${one.eventId} ${one.endpointId} ${one.replayNo}`);
  const on = new Set(rows.map(keyOf));
  for (const { eventId, name } of model.wanted) {
    if (eventId === null) continue;
    for (const { id } of model.endpoints) if (!on.has(`${eventId} ${id} 0`)) model.violate(`lost: ${name} to ${id}`);
  }
  for (const row of rows) {
    const key = keyOf(row);
    const requests = received.get(key) ?? [];
    const what = `${key} ${row["status"]} ${row["final_outcome"]}`;
    if (row["terminal_at"] === null) {
      model.violate(
        `left open: ${key} ${row["status"]} in ${row["lane_key"]}, due ${world.now - row["next_attempt_at"]} ms ago, ${JSON.stringify(objects.alarms())}`,
      );
      continue;
    }
    if (row["final_outcome"] === "cancelled" && !model.cancelled.has(key))
      model.violate(`cancelled by nobody: ${what}`);
    for (const request of requests) {
      const attempt = attempts.get(key)?.find((one) => one["attempt_number"] === request.attempt);
      if (!attempt) model.violate(`a request that is not on record: ${what} #${request.attempt}`);
      else if (
        request.toldAt !== null &&
        request.answered === "success" &&
        attempt["outcome_class"] !== "success" &&
        (request.from.diedAt === null || request.from.diedAt > request.toldAt + 60_000) &&
        !world.isExcused(request.toldAt, request.from)
      )
        model.violate(`a known success that is not on record: ${what} #${request.attempt} ${attempt["error_class"]}`);
    }
    if (!isExplained(row, attempts.get(key) ?? [], requests, model.erased.has(row["event_id"])))
      model.violate(`ended without a reason: ${what}`);
    for (const attempt of attempts.get(key) ?? []) {
      const request = requests.find((one) => one.attempt === attempt["attempt_number"]);
      if (attempt["outcome_class"] === null) {
        model.violate(`an attempt is open for ever: ${what}`);
        continue;
      }
      if (attempt["outcome_class"] === "success" && request?.answered !== "success")
        model.violate(`a success that was none: ${what}`);
      if (attempt["error_class"] === "abandoned" && !weather.leavesClaims && !isLeft(world, attempt))
        model.violate(`a claim was left to its lease: ${what} #${attempt["attempt_number"]}`);
      const isOurs = attempt["error_class"] === "abandoned" || attempt["error_class"] === "internal";
      if (request?.answered === "success" && attempt["outcome_class"] !== "success" && !isOurs)
        model.violate(`a success put on record as ${attempt["error_class"]}: ${what}`);
    }
  }
}

/** Who claimed it died before its lease ended, or the ledger was away meanwhile. */
function isLeft(world: Relay["world"], attempt: Record<string, any>): boolean {
  const claimant = world.claimants.get(`${keyOf(attempt)} ${attempt["attempt_number"]}`)!;
  const { requested_at: from, responded_at: to } = attempt;
  return (
    (claimant.diedAt !== null && claimant.diedAt <= to) ||
    world.outages.some((away) => away.from <= to && away.to >= from)
  );
}

const keyOf = (row: Record<string, any>) => `${row["event_id"]} ${row["endpoint_id"]} ${row["replay_no"]}`;

function isExplained(
  row: Record<string, any>,
  attempts: Record<string, any>[],
  requests: Relay["model"]["received"],
  isErased: boolean,
): boolean {
  const policy = JSON.parse(row["policy"]);
  const counted = attempts.filter(
    ({ outcome_class, error_class }) =>
      outcome_class !== "success" && error_class !== "abandoned" && error_class !== "internal",
  );
  switch (row["final_outcome"]) {
    case "delivered":
      return requests.some(({ answered }) => answered === "success");
    case "exhausted":
      return counted.length >= policy.max_attempts;
    case "rejected":
    case "gone":
      return counted.some(({ status_code }) => status_code === (row["final_outcome"] === "gone" ? 410 : 422));
    case "same_error":
      return counted.length >= policy.same_error_limit;
    case "expired":
      return row["scheduled_at"] !== null && row["terminal_at"] - row["scheduled_at"] >= policy.max_age_seconds * 1000;
    case "held_too_long":
      return row["terminal_at"] - row["created_at"] >= 60_000;
    case "abandoned":
      return attempts.filter(({ error_class }) => error_class === "abandoned").length >= 5;
    case "endpoint_disabled":
      return row["terminal_at"] === row["created_at"];
    case "payload_missing":
      return isErased;
    case "cancelled":
      return true;
    default:
      return false;
  }
}
