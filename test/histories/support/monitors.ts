/**
 * What must never happen to a row, said by the database itself and beside whatever the relay's statements prove: each
 * trigger writes down what it saw. Nothing is refused, so the relay does not notice.
 */
const watch = (name: string, on: string, when: string, what: string) => `
create temp trigger ${name} ${on}
when not exists (select 1 from quiet) and (${when})
begin insert into violation values (${what}); end;`;

const DELIVERY = "new.event_id || ' ' || new.replay_no";
const SAME_DELIVERY = (a: string, b: string) =>
  `${a}.tenant_id = ${b}.tenant_id and ${a}.event_id = ${b}.event_id and ${a}.endpoint_id = ${b}.endpoint_id and ${a}.replay_no = ${b}.replay_no`;

export const MONITORS = [
  "create temp table violation (what text);",
  "create temp table quiet (yes integer);",
  // What an endpoint was set to, by revision.
  `create temp table settings (endpoint_id text, revision integer, ordering_mode text, concurrency_cap integer,
     rate_limit_per_second real, primary key (endpoint_id, revision));`,
  ...["insert", "update"].map(
    (verb) => `create temp trigger settings_after_${verb} after ${verb} on endpoint begin
      insert or replace into settings values
        (new.id, new.revision, new.ordering_mode, new.concurrency_cap, new.rate_limit_per_second); end;`,
  ),
  watch("event_is_kept", "after delete on event", "true", "'event lost: ' || old.id"),
  watch("delivery_is_kept", "after delete on delivery", "true", "'delivery lost: ' || old.event_id"),
  // Terminal rows change only replayed_as, and where they stood in a lane.
  watch(
    "terminal_is_terminal",
    "before update on delivery",
    `old.terminal_at is not null and (new.status <> old.status or new.terminal_at is not old.terminal_at
       or new.final_outcome is not old.final_outcome or new.attempt_count <> old.attempt_count)`,
    `'terminal delivery changed: ' || old.status || ' to ' || new.status || ' ' || ${DELIVERY}`,
  ),
  watch(
    "terms_are_kept",
    "before update on delivery",
    "new.retry_policy_id <> old.retry_policy_id or new.created_at <> old.created_at or new.subscription_id <> old.subscription_id",
    `'terms of a delivery changed: ' || ${DELIVERY}`,
  ),
  // A delivery that somebody has under way moves by what came of its attempt, or by the success of an earlier one.
  watch(
    "moves_with_its_attempt",
    "after update on delivery",
    `old.status = 'processing' and new.status <> 'processing' and new.status <> 'succeeded' and exists (
       select 1 from attempt a where ${SAME_DELIVERY("a", "new")} and a.attempt_number = old.attempt_count
         and a.outcome_class is null)`,
    `'stale token: a delivery moved without its attempt, to ' || new.status || ' ' || ${DELIVERY}`,
  ),
  watch(
    "dies_by_its_attempt",
    "after update on delivery",
    "old.status = 'pending' and new.status = 'dead_letter' and new.final_outcome <> 'held_too_long'",
    `'stale token: a delivery died that nobody had under way: ' || ${DELIVERY}`,
  ),
  watch(
    "attempt_has_its_turn",
    "after insert on attempt",
    `not exists (select 1 from delivery d where ${SAME_DELIVERY("d", "new")} and d.status = 'processing'
       and d.attempt_count = new.attempt_number)`,
    `'attempt opened beside its delivery: ' || ${DELIVERY} || ' #' || new.attempt_number`,
  ),
  watch(
    "attempts_have_no_gaps",
    "after insert on attempt",
    `new.attempt_number <> (select count(*) from attempt a where ${SAME_DELIVERY("a", "new")})`,
    `'gap in attempts: ' || ${DELIVERY} || ' #' || new.attempt_number`,
  ),
  watch(
    "attempts_are_one_at_a_time",
    "after insert on attempt",
    `exists (select 1 from attempt a where ${SAME_DELIVERY("a", "new")} and a.attempt_number < new.attempt_number
       and a.outcome_class is null)`,
    `'attempt opened beside an open one: ' || ${DELIVERY} || ' #' || new.attempt_number`,
  ),
  watch(
    "attempt_is_allowed",
    "after insert on attempt",
    `exists (select 1 from endpoint e cross join tenant t on t.id = e.tenant_id
       where e.tenant_id = new.tenant_id and e.id = new.endpoint_id
         and (e.paused_at is not null or e.disabled_at is not null or e.deleted_at is not null or t.status <> 'active'
           or e.revision <> new.endpoint_revision))`,
    `'attempt opened under settings that are not the present ones: ' || ${DELIVERY}`,
  ),
  watch(
    "attempt_is_the_head",
    "after insert on attempt",
    `exists (select 1 from delivery d cross join delivery x on x.endpoint_id = d.endpoint_id and x.lane_key = d.lane_key
         and x.terminal_at is null and x.lane_key is not null
       where ${SAME_DELIVERY("d", "new")}
         and (x.lane_position < d.lane_position or x.status = 'processing'
           and (x.event_id <> d.event_id or x.replay_no <> d.replay_no)))`,
    `'attempt of what is not the head of its lane: ' || ${DELIVERY}`,
  ),
  watch(
    "attempt_is_not_blocked",
    "after insert on attempt",
    `exists (select 1 from delivery d cross join lane_block b on b.endpoint_id = d.endpoint_id and b.lane_key = d.lane_key
       where ${SAME_DELIVERY("d", "new")})`,
    `'attempt in a blocked lane: ' || ${DELIVERY}`,
  ),
  // Whatever dies as a head of an endpoint that asks for it stops its lane, in the same batch.
  "create temp table owed_block (endpoint_id text, event_id text, replay_no integer);",
  `create temp trigger block_is_owed after update on delivery
   when not exists (select 1 from quiet) and old.terminal_at is null and new.status in ('dead_letter', 'expired')
     and new.lane_key is not null and substr(new.lane_key, 1, 1) <> ' ' and substr(new.lane_key, 1, 2) <> '~ '
     and exists (select 1 from endpoint e where e.tenant_id = new.tenant_id and e.id = new.endpoint_id
       and e.on_exhausted = 'block' and e.route = 'lane')
   begin insert into owed_block values (new.endpoint_id, new.event_id, new.replay_no); end;`,
  `create temp trigger block_is_paid after insert on lane_block
   begin delete from owed_block where endpoint_id = new.endpoint_id and event_id = new.event_id
     and replay_no = new.replay_no; end;`,
  watch(
    "replay_of_blocked_head_is_first",
    "after insert on delivery",
    `exists (select 1 from lane_block b where b.endpoint_id = new.endpoint_id and b.lane_key = new.lane_key
         and b.event_id = new.event_id and b.replay_no = new.replay_of)
       and exists (select 1 from delivery x where x.endpoint_id = new.endpoint_id and x.lane_key = new.lane_key
         and x.terminal_at is null and (x.event_id <> new.event_id or x.replay_no <> new.replay_no)
         and x.lane_position <= new.lane_position
         -- Of two that were heads together both may be replayed by one statement.
         and not exists (select 1 from lane_block b where b.endpoint_id = x.endpoint_id and b.lane_key = x.lane_key
           and b.event_id = x.event_id and b.replay_no = x.replay_of))`,
    `'the replay of a blocked head is not first: ' || ${DELIVERY}`,
  ),
  watch(
    "others_join_at_the_tail",
    "after insert on delivery",
    `new.terminal_at is null and new.lane_key is not null
       and not exists (select 1 from lane_block b where b.endpoint_id = new.endpoint_id and b.lane_key = new.lane_key
         and b.event_id = new.event_id and b.replay_no = new.replay_of)
       and exists (select 1 from delivery x where x.endpoint_id = new.endpoint_id and x.lane_key = new.lane_key
         and x.terminal_at is null and (x.event_id <> new.event_id or x.replay_no <> new.replay_no)
         and x.lane_position >= new.lane_position)`,
    `'it does not join at the tail: ' || ${DELIVERY}`,
  ),
  watch(
    "a_block_stops_ages",
    "after delete on lane_block",
    `exists (select 1 from delivery x where x.endpoint_id = old.endpoint_id and x.lane_key = old.lane_key
       and x.terminal_at is null and x.status = 'pending' and x.scheduled_at < old.blocked_at)`,
    "'its age ran behind a block: lane ' || old.lane_key || ' of ' || old.event_id",
  ),
  watch(
    "disabled_gets_nothing_new",
    "after insert on delivery",
    `(new.final_outcome is 'endpoint_disabled') <> exists (select 1 from endpoint e
       where e.tenant_id = new.tenant_id and e.id = new.endpoint_id and e.disabled_at is not null)`,
    `'born at a disabled endpoint, or not: ' || new.status || ' ' || ${DELIVERY}`,
  ),
  watch(
    "closed_attempts_are_closed",
    "before update on attempt",
    "old.outcome_class is not null and old.error_class is not 'abandoned'",
    `'closed attempt changed: ' || ${DELIVERY} || ' #' || new.attempt_number`,
  ),
  watch(
    "requests_stay_on_record",
    "after delete on attempt",
    "old.outcome_class is not null",
    "'attempt lost: ' || old.event_id || ' #' || old.attempt_number",
  ),
].join("\n");
