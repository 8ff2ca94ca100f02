import type { RetryPolicy, RetryPolicyInput } from "./retry-policy.ts";

/** What a bulk replay takes: all that is given has to hold. Times are ms since 1970 UTC. */
export interface ReplayFilter {
  endpointId: string | null;
  subscriptionId: string | null;
  /** Null: what died, and what was refused. */
  status: ReplayableStatus | null;
  errorClass: string | null;
  eventType: string | null;
  sourceId: string | null;
  createdAfter: number | null;
  createdBefore: number | null;
}

/** How a delivery can have ended that a bulk replay finds. */
export const REPLAYABLE_STATUSES = ["dead_letter", "failed", "expired", "cancelled"] as const;
export type ReplayableStatus = (typeof REPLAYABLE_STATUSES)[number];
const DEFAULT_STATUSES: readonly ReplayableStatus[] = ["dead_letter", "failed"];

export function statusesOf({ status }: Pick<ReplayFilter, "status">): readonly ReplayableStatus[] {
  return status === null ? DEFAULT_STATUSES : [status];
}

export const REPLAY_STATES = ["dry_run", "running", "completed", "cancelled", "failed"] as const;
export type ReplayState = (typeof REPLAY_STATES)[number];

/** Why a delivery that was meant is not replayed. */
export const SKIP_REASONS = [
  "same_event",
  "already_replayed",
  "still_open",
  "replayed_too_often",
  "expired",
  "payload_erased",
  "endpoint_deleted",
  "endpoint_disabled",
  "subscription_deleted",
  "subscription_disabled",
  "version_not_published",
  "version_retired",
  "filter_failed",
] as const;
export type SkipReason = (typeof SKIP_REASONS)[number];

/** A bulk replay as it stands. */
export interface Replay {
  id: string;
  state: ReplayState;
  filter: ReplayFilter;
  /** Where past events are filled in instead; null for a replay of deliveries. */
  toSubscriptionId: string | null;
  /** As it was given. */
  retryPolicy: RetryPolicyInput | null;
  includeReplayed: boolean;
  /** What was counted before it began; null where counting did not come to an end. */
  expected: number | null;
  expectedAtLeast: number;
  /** Ids of some deliveries, or events, that it would take. */
  sample: string[];
  lookedAt: number;
  /** Meant so far: replayed, or skipped. */
  found: number;
  replayed: number;
  skipped: Partial<Record<SkipReason, number>>;
  error: string | null;
  createdAt: number;
  startedAt: number | null;
  finishedAt: number | null;
}

/** What a running replay still has to do at one endpoint, as it is now. */
export interface ReplayPart {
  tenantId: string;
  replayId: string;
  endpointId: string;
  step: number;
  afterEventId: string;
  /** Of the replays it has made, those that have not ended. */
  open: [eventId: string, replayNo: number][];
  waits: number;
  faults: number;
  filter: ReplayFilter;
  toSubscriptionId: string | null;
  retryPolicy: RetryPolicyInput | null;
  includeReplayed: boolean;
  startedAt: number;
  endpointPolicy: RetryPolicy;
  lane: { generation: number } | null;
}

/** Of one tenant at a time: each is walked by the watchdog of its shard, which has other work too. */
export const MAX_RUNNING_REPLAYS = 5;
/** Endpoints that one replay may walk side by side. */
export const MAX_REPLAY_ENDPOINTS = 10_000;
/** Deliveries that a count before the start looks at. */
export const MAX_COUNTED = 20_000;
/** Deliveries that one step looks at. */
export const LOOKED_AT_PER_STEP = 1_000;
export const MAX_SAMPLE = 10;
/** How long a replay that has ended, or never began, is kept. */
export const REPLAY_KEPT_MS = 30 * 24 * 3_600_000;

/** Replays of one job that are open at an endpoint, at most: a receiver that is just back gets no more at once. */
export const MAX_OPEN = 100;
/** With so many still open none is added. */
const ENOUGH_OPEN = MAX_OPEN / 2;

/** How many replays may be added to those that are open. */
export function roomFor(open: number): number {
  return open > ENOUGH_OPEN ? 0 : MAX_OPEN - open;
}

const STEP_PAUSE_MS = 250;
const LONGEST_WAIT_MS = 30_000;
const LONGEST_FAULT_PAUSE_MS = 60_000;
/** A step that fails so often in a row, over more than an hour and a half, never will do. */
export const MAX_FAULTS = 100;

/** Until the next step of a part that was found without room `waits` times in a row, in ms. */
export function stepPauseMs(waits: number): number {
  return Math.min(STEP_PAUSE_MS * 2 ** Math.min(waits, 10), LONGEST_WAIT_MS);
}

/** Until the next step of a part whose last `faults` steps failed, in ms. */
export function faultPauseMs(faults: number): number {
  return Math.min(1_000 * 2 ** Math.min(faults, 10), LONGEST_FAULT_PAUSE_MS);
}

/** A delivery that the walk has come to. */
export interface Walked {
  eventId: string;
  replayNo: number;
  /** It is meant by the filter, and was when the replay began. */
  isMeant: boolean;
}

export interface Chosen {
  eventId: string;
  /** The newest of those that are meant: the one that is replayed. */
  replayNo: number;
  /** All of them: each is marked. */
  replayNos: number[];
}

/** What one step does. */
export interface Choice {
  /** In order. */
  chosen: Chosen[];
  lookedAt: number;
  found: number;
  /** Where the next step goes on, behind this event; null when the walk has come to its end. */
  afterEventId: string | null;
}

/** A past event that a new subscription is to get. */
export interface Backfilled {
  eventId: string;
  schemaVersion: number;
  filterSteps: number | null;
}

/** What one step of a back-fill does. */
export interface EventChoice {
  /** In order. */
  chosen: Backfilled[];
  lookedAt: number;
  /** Chosen, or skipped for a reason that is known without the ledger. */
  found: number;
  skipped: Partial<Record<SkipReason, number>>;
  /** Payloads that were read for the filter. */
  evaluated: number;
  /** Null at the end. */
  afterEventId: string | null;
  /** Under which configuration; what was chosen holds under no other. */
  revision: number;
}

/**
 * Takes from a walk, which is in order of event and replay number, as much as there is room for. An event is one delivery to its
 * endpoint, however many of its replays are meant: so none is divided between two steps. `mayHaveMore` says that the walk was
 * cut off, perhaps within its last event.
 */
export function chooseReplays(walked: Walked[], room: number, mayHaveMore: boolean): Choice {
  const events = [...Map.groupBy(walked, ({ eventId }) => eventId)];
  // An event with more replays than a step looks at is taken as far as it was seen.
  const whole = mayHaveMore && events.length > 1 ? events.slice(0, -1) : events;
  const chosen: Chosen[] = [];
  let taken = 0;
  let lookedAt = 0;
  let found = 0;
  for (const [eventId, rows] of whole) {
    const replayNos = rows.filter(({ isMeant }) => isMeant).map(({ replayNo }) => replayNo);
    if (replayNos.length > 0 && chosen.length === room) break;
    taken++;
    lookedAt += rows.length;
    found += replayNos.length;
    if (replayNos.length > 0) chosen.push({ eventId, replayNo: Math.max(...replayNos), replayNos });
  }
  const isEnd = taken === events.length && !mayHaveMore;
  return { chosen, lookedAt, found, afterEventId: isEnd ? null : (whole[taken - 1]?.[0] ?? null) };
}
