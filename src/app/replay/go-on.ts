import { deliveryId } from "../../core/ids.ts";
import {
  chooseReplays,
  faultPauseMs,
  MAX_FAULTS,
  roomFor,
  stepPauseMs,
  type Choice,
  type EventChoice,
  type ReplayPart,
  type Walked,
} from "../../core/replay.ts";
import { mergeRetryPolicy, type RetryPolicy } from "../../core/retry-policy.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import { chooseEvents, type ChooseEventsDeps } from "./choose-events.ts";
import type { Runtime } from "../runtime.ts";

export interface GoOnWithReplaysDeps extends ChooseEventsDeps, Pick<Runtime, "now" | "sleep"> {
  listDueReplayParts(now: number, limit: number): Promise<ReplayPart[]>;
  walkReplayable(part: ReplayPart): Promise<{ walked: Walked[]; mayHaveMore: boolean }>;
  /** Writes nothing where the replay does not run any more, or somebody has taken this step. Gives back what was made. */
  takeReplayStep(
    part: ReplayPart,
    choice: Choice,
    policy: RetryPolicy | null,
    now: number,
    nextStepAt: number,
  ): Promise<{ eventId: string; replayNo: number }[]>;
  /** The same for events, and only under the configuration that they were chosen by. */
  takeBackfillStep(
    part: ReplayPart,
    choice: EventChoice,
    policy: RetryPolicy | null,
    now: number,
    nextStepAt: number,
  ): Promise<{ eventId: string; replayNo: number }[]>;
  putOffReplayStep(part: ReplayPart, to: { waits: number; faults: number; nextStepAt: number }): Promise<void>;
  failReplay(tenantId: string, replayId: string, error: string, now: number): Promise<void>;
  ringLater(calls: DeliveryCall[], delayMs: number): void;
  wakeLane(lane: { tenantId: string; endpointId: string; generation: number }): void;
  logFault(what: string, error: unknown): void;
}

const PARTS_AT_ONCE = 20;
/** A tick of the watchdog has other work: it stays with replays for so many rounds, and comes back. */
const ROUNDS = 4;
const ROUND_PAUSE_MS = 250;
/** And no longer than so, however slow steps are: filters that read payloads, a ledger that takes its time. */
const MAX_STAY_MS = 10_000;

/** Takes the steps of bulk replays that are due, a bounded number of them. Says whether there is more to do right away. */
export async function goOnWithReplays(deps: GoOnWithReplaysDeps): Promise<boolean> {
  const until = deps.now() + MAX_STAY_MS;
  for (let round = 1; ; round++) {
    const parts = await deps.listDueReplayParts(deps.now(), PARTS_AT_ONCE);
    for (const part of parts) {
      if (deps.now() > until) return true;
      await takeStep(deps, part);
    }
    if (parts.length === 0) return false;
    if (round === ROUNDS) return true;
    await deps.sleep(ROUND_PAUSE_MS);
  }
}

/** A part whose step fails must not keep the others from theirs. */
async function takeStep(deps: GoOnWithReplaysDeps, part: ReplayPart): Promise<void> {
  try {
    const room = roomFor(part.open.length);
    if (room > 0) await replaySome(deps, part, room);
    else await wait(deps, part);
  } catch (error) {
    deps.logFault("go on with a replay", error);
    await putOff(deps, part).catch((fault: unknown) => deps.logFault("put off a replay", fault));
  }
}

async function replaySome(deps: GoOnWithReplaysDeps, part: ReplayPart, room: number): Promise<void> {
  const { tenantId, endpointId, toSubscriptionId: subscriptionId } = part;
  // What it makes is younger than itself, whatever the clocks say: so it never takes it for something to be replayed.
  const now = Math.max(deps.now(), part.startedAt + 1);
  const policy = part.retryPolicy && mergeRetryPolicy(part.endpointPolicy, part.retryPolicy);
  const nextStepAt = now + stepPauseMs(0);
  let made: { eventId: string; replayNo: number }[];
  if (subscriptionId === null) {
    const { walked, mayHaveMore } = await deps.walkReplayable(part);
    made = await deps.takeReplayStep(part, chooseReplays(walked, room, mayHaveMore), policy, now, nextStepAt);
  } else {
    const choice = await chooseEvents(deps, { ...part, subscriptionId }, part.afterEventId, part.startedAt, room);
    made = await deps.takeBackfillStep(part, choice, policy, now, nextStepAt);
  }
  if (made.length === 0) return;
  if (part.lane) deps.wakeLane({ tenantId, endpointId, generation: part.lane.generation });
  else {
    const calls = made.map((ref) => ({ tenantId, deliveryId: deliveryId({ ...ref, endpointId }), attemptNumber: 1 }));
    deps.ringLater(calls, 0);
  }
}

async function wait(deps: GoOnWithReplaysDeps, part: ReplayPart): Promise<void> {
  const waits = part.waits + 1;
  await deps.putOffReplayStep(part, { waits, faults: 0, nextStepAt: deps.now() + stepPauseMs(waits) });
}

async function putOff(deps: GoOnWithReplaysDeps, part: ReplayPart): Promise<void> {
  const { tenantId, replayId, waits } = part;
  const faults = part.faults + 1;
  if (faults > MAX_FAULTS) {
    await deps.failReplay(tenantId, replayId, "Its steps fail again and again; the relay's log says why.", deps.now());
  } else {
    await deps.putOffReplayStep(part, { waits, faults, nextStepAt: deps.now() + faultPauseMs(faults) });
  }
}
