import { relayFaultDelayMs } from "../../core/delivery-end.ts";
import { beginningsOf } from "../../core/lane-pace.ts";
import { peakPayloadBytes, RETRY_KEY_PREFIX, selectRunnable, type LaneHead } from "../../core/lane.ts";
import { LEASE_MARGIN_MS } from "../deliver/deliver.ts";
import { callFor, type DeliveryCall } from "../deliver/delivery-call.ts";
import type { LoadedDelivery } from "../deliver/prepare.ts";
import type { AttemptReport } from "../deliver/report.ts";
import { leaveWhenDone, noteEnd, restsUntil, setCapacity } from "./drain.ts";
import { ELSEWHERE_CHECK_MS, forgetElsewhere, lookElsewhere, roomTakenBeside } from "./elsewhere.ts";
import type { LaneDeps, LaneSettings, LaneState, LaneView } from "./lane-state.ts";
import { forgetOldFaults, ROWS_PER_KEY, wakeBy } from "./lane-state.ts";
import { hasRoom } from "./has-room.ts";
import { ROWS_ARE_OLD_MS, runHead, STORE_TIMEOUT_MS } from "./run-head.ts";
import { settleHeads, wakeForHolds } from "./settle-heads.ts";
import { takeTurn } from "./turn.ts";

const KEYS_PER_LOAD = 64;
/** The same of a strict lane, which has one key, while all goes well. */
const MOST_ROWS_PER_KEY = 64;
/** While a lane stands still by an operator's word, its clocks are looked at this often, the parts of a long one apart. */
const STANDING_CHECK_MS = 60_000;
const STANDING_PART_MS = 1_000;
const LEDGER_RETRY_MS = 2_000;
const PAUSE_PER_PART_MS = 20;

/**
 * Brings a lane as far as it will go now. Wakes, alarms and finished requests all come here; one at a time runs, and one
 * that comes meanwhile makes it run once more. Resolves to when it must run again, null when nothing is open. Never throws.
 * `isRung` says that there may be something new.
 */
export async function pump(deps: LaneDeps, state: LaneState, isRung = false): Promise<number | null> {
  state.dirty = true;
  state.calledAgain = true;
  state.isRung ||= isRung;
  state.pumping ??= pumpWhileDirty(deps, state);
  await state.pumping;
  // A lane that is full goes on when a request of its own has ended.
  const isFull = state.running.size >= state.capacity;
  const restUntil = restsUntil(state, deps.now());
  const isShut = isFull || restUntil !== null;
  const wakeAt = isShut ? earlier(state.lookAgainAt, restUntil) : state.spare ? state.spareAt : state.wakeAt;
  return state.running.size === 0 ? wakeAt : Math.min(wakeAt ?? Infinity, deps.now() + state.leaseMs);
}

async function pumpWhileDirty(deps: LaneDeps, state: LaneState): Promise<void> {
  try {
    while (state.dirty) {
      state.dirty = false;
      await step(deps, state);
    }
  } catch (error) {
    deps.logFault("lane", error);
    state.fromKey = "";
    state.spare = null;
    state.wakeAt = deps.now() + LEDGER_RETRY_MS;
  } finally {
    // In one turn with the last look at `dirty`, or a wake between the two would be lost.
    state.pumping = null;
  }
}

async function step(deps: LaneDeps, state: LaneState): Promise<void> {
  if (!(await hasRoom(deps, state))) return;
  forgetOldSpare(state, deps.now());
  const { spare } = state;
  const view = (await loadFirsts(deps, state)) ?? state.spare ?? (await loadNext(deps, state));
  state.spare = null;
  if (view === null) return;
  const { settings } = view;
  const now = deps.now();
  if (settings?.laneGeneration !== state.generation) {
    if (settings) deps.wakeLane({ ...state, generation: settings.laneGeneration });
    return;
  }
  // Given to queues while a request was out: nobody else rings for its retry. What was read before says nothing of that.
  const ended = view === spare ? [] : state.ended.splice(0);
  if (settings.route !== "lane") return ended.length > 0 ? deps.ringQueue(ended, 0) : undefined;
  const isStanding = settings.pausedAt !== null || settings.disabledAt !== null;
  const goesOn = state.isStanding && !isStanding;
  state.isStanding = isStanding;
  // What was passed while it stood still is to go now.
  if (goesOn && state.partsWalked > 1) {
    state.fromKey = "";
    state.walkAgainAt = 0;
    state.dirty = true;
    return;
  }
  setCapacity(state, settings, now);
  state.isUnordered = settings.orderingMode === "unordered";
  const isEmpty = view.lanes.length === 0 && state.partFrom === "";
  const hasLeft = await leaveWhenDone(deps, state, isEmpty, now);
  if (hasLeft !== null) {
    Object.assign(state, { spare: null, fromKey: "", walkAgainAt: 0 });
    // Somebody else may have ended it, and what is open may be this lane's all the same.
    if (!hasLeft || !isEmpty) wakeBy(state, now + LEDGER_RETRY_MS);
    return;
  }
  if (view.lanes.length === 0) return;
  state.revision = settings.revision;
  if (await settleHeads(deps, state, view, settings, now)) {
    // Only the part that was read has changed.
    state.fromKey = state.partFrom;
    state.partsWalked--;
    state.dirty = true;
    return;
  }
  if (isStanding) {
    state.wakeAt = now + (state.fromKey === "" ? STANDING_CHECK_MS : STANDING_PART_MS);
    return;
  }

  wakeForHolds(state, view, settings);
  // Of a strict lane the head alone may be under way, and its claim proves that.
  if (settings.orderingMode === "strict") forgetElsewhere(state);
  else await lookElsewhere(deps, state, settings, now);
  // Where a rate counts every start, or an answer decides on the next, each has to be let through on its own.
  const reach = settings.ratePerSecond === null && state.drain === null ? MOST_ROWS_PER_KEY : 1;
  const heads = view.lanes.map((lane) => toHead(state, lane, reach, now));
  const seen = new Set(heads.map(({ laneKey }) => laneKey));
  // What is under way behind the part that was read, or behind a head, takes room as well.
  const heldBytes = [...state.running.values()].reduce((sum, bytes) => sum + bytes, 0);
  const limits = {
    concurrencyCap: state.capacity - roomTakenBeside(state, seen),
    ratePerSecond: settings.ratePerSecond,
    heldBytes,
  };
  const { start, rest, wakeAt } = selectRunnable(heads, limits, beginningsOf(state.pace.turns), now);
  const lanes = new Map(view.lanes.map((lane) => [lane.laneKey, lane]));
  for (const head of start) {
    const deliveries = lanes.get(head.laneKey)!.deliveries.slice(0, reach);
    state.running.set(head.laneKey, head.payloadBytes);
    deps.background(startKey(deps, state, settings, deliveries, state.readAt, view.region));
  }
  if (wakeAt !== null) wakeBy(state, wakeAt);
  state.leaseMs = view.lanes[0]!.deliveries[0]!.endpoint.timeoutMs + LEASE_MARGIN_MS;
  if (rest.length > 0) {
    // What there was no room for goes next, without being read again; its claims prove that it still may.
    state.spare = { ...view, lanes: rest.map(({ laneKey }) => lanes.get(laneKey)!) };
    // Others have requests under way, and only the ledger knows when they have not.
    state.spareAt = state.elsewhere.size > 0 ? Math.min(wakeAt ?? Infinity, now + ELSEWHERE_CHECK_MS) : wakeAt;
  } else if (state.fromKey !== "") {
    state.dirty = true;
  }
}

/** What found no room for so long is read again: its event's source, or its tenant, may be another by now. */
function forgetOldSpare(state: LaneState, now: number): void {
  if (state.spare === null || now - state.readAt <= ROWS_ARE_OLD_MS) return;
  state.fromKey = state.spare.lanes[0]!.laneKey;
  state.partsWalked--;
  state.spare = null;
}

/**
 * The next part of the lane, or null while a long walk over one with many keys must not begin again yet: looking through a
 * backlog of which nothing is due costs reads that grow with it, so the pauses between grow too.
 */
async function loadNext(deps: LaneDeps, state: LaneState): Promise<LaneView | null> {
  if (state.fromKey === "") {
    if (deps.now() < state.walkAgainAt) {
      state.wakeAt = state.walkAgainAt;
      return null;
    }
    state.wakeAt = null;
    state.isRung = false;
    state.partsWalked = 0;
    forgetOldFaults(state, deps.now());
    state.calledAgain = false;
  }
  const { tenantId, endpointId, fromKey } = state;
  const readAt = deps.now();
  // Never more rows, should the mode be another by now.
  const maxKeys = (KEYS_PER_LOAD * ROWS_PER_KEY) / state.rowsPerKey;
  const view = await deps.within(
    STORE_TIMEOUT_MS,
    deps.loadLane(tenantId, endpointId, fromKey, maxKeys, state.rowsPerKey, readAt),
  );
  state.readAt = readAt;
  state.partsWalked++;
  state.partFrom = fromKey;
  // The smallest text behind the last key.
  state.fromKey = view.hasMore ? `${view.lanes.at(-1)!.laneKey}\0` : "";
  if (!view.hasMore && state.partsWalked > 1) {
    state.walkAgainAt = deps.now() + state.partsWalked * PAUSE_PER_PART_MS;
    // Whoever came while it walked may have meant a part that it had passed.
    if (state.calledAgain) wakeBy(state, state.walkAgainAt);
  }
  return view;
}

/**
 * What nobody has tried yet, where retries would go next and somebody has rung since: those never go before it. Null when there
 * is none, or the walk comes to it by itself.
 */
async function loadFirsts(deps: LaneDeps, state: LaneState): Promise<LaneView | null> {
  const nextKey = state.spare?.lanes[0]!.laneKey ?? state.fromKey;
  const rests = state.spare === null && state.fromKey === "" && deps.now() < state.walkAgainAt;
  if (!state.isRung || !state.isUnordered || !(rests || nextKey >= RETRY_KEY_PREFIX)) return null;
  state.isRung = false;
  const { tenantId, endpointId } = state;
  const readAt = deps.now();
  const view = await deps.within(
    STORE_TIMEOUT_MS,
    deps.loadLane(tenantId, endpointId, "", KEYS_PER_LOAD, ROWS_PER_KEY, readAt, RETRY_KEY_PREFIX),
  );
  if (view.lanes.length === 0) return null;
  state.readAt = readAt;
  state.partFrom = "";
  if (view.hasMore) state.fromKey = `${view.lanes.at(-1)!.laneKey}\0`;
  else if (!rests) state.fromKey = RETRY_KEY_PREFIX;
  return view;
}

function toHead(
  state: LaneState,
  { laneKey, blocked, deliveries }: LaneView["lanes"][number],
  reach: number,
  now: number,
): LaneHead {
  const head = deliveries[0]!;
  return {
    laneKey,
    status: state.running.has(laneKey) || head.status === "processing" ? "processing" : "pending",
    nextAttemptAt: head.nextAttemptAt ?? now,
    lockedUntil: state.running.has(laneKey) ? null : head.lockedUntil,
    blocked,
    notBefore: state.faults.get(laneKey)?.until ?? null,
    payloadBytes: peakPayloadBytes(deliveries.slice(0, reach).map(({ event }) => event.payloadSize)),
  };
}

/** Runs a key from its head on as far as it goes, then looks what is to be done next. Never throws. */
async function startKey(
  deps: LaneDeps,
  state: LaneState,
  { ratePerSecond, orderingMode }: LaneSettings,
  deliveries: LoadedDelivery[],
  readAt: number,
  region: string | null,
): Promise<void> {
  const laneKey = deliveries[0]!.laneKey!;
  const turn = ratePerSecond === null ? null : takeTurn(deps, state.pace, ratePerSecond);
  let last: DeliveryCall[] = [];
  let attempted = 0;
  const note = (report: AttemptReport) => {
    noteEnd(state, report, deps.now());
    attempted++;
    last = [callFor(report, report.attemptNumber + 1)];
  };
  const result = await runHead(deps, deliveries, readAt, region, state.generation, turn, note).catch((error) => {
    deps.logFault("lane head", error);
    return "fault" as const;
  });
  turn?.end();
  const usedAll = orderingMode === "strict" && attempted >= ROWS_PER_KEY && attempted === deliveries.length;
  state.rowsPerKey = usedAll ? MOST_ROWS_PER_KEY : ROWS_PER_KEY;
  state.ended.push(...last);
  if (result === "fault") {
    const count = (state.faults.get(laneKey)?.count ?? 0) + 1;
    state.faults.set(laneKey, { count, until: deps.now() + relayFaultDelayMs(count) });
  } else {
    state.faults.delete(laneKey);
  }
  if (result === "lost") {
    // What was read with it is as old as it was, and what was given back may be due elsewhere.
    state.spare = null;
    state.ended.push(...deliveries.map((delivery) => callFor(delivery, delivery.attemptCount + 1)));
  }
  state.running.delete(laneKey);
  await deps.pumpAgain();
}

const earlier = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : Math.min(a, b));
