import { MAX_RATE_PER_SECOND, type Turn } from "../../core/lane-pace.ts";
import type { Drain } from "../../core/quarantine.ts";
import type { DeliveryCall } from "../deliver/delivery-call.ts";
import type { Place } from "../deliver/in-flight.ts";
import type { LoadedDelivery } from "../deliver/prepare.ts";
import type { RunHeadDeps } from "./run-head.ts";
import type { Pace } from "./turn.ts";

/** Rows loaded of each key: what stands behind the head is claimed with the head's close. */
export const ROWS_PER_KEY = 16;

export interface LaneSettings {
  revision: number;
  orderingMode: "unordered" | "strict" | "keyed";
  route: "queue" | "lane";
  concurrencyCap: number | null;
  ratePerSecond: number | null;
  maxHeadHoldSeconds: number | null;
  laneGeneration: number;
  /** Also while its tenant is suspended. */
  pausedAt: number | null;
  disabledAt: number | null;
  deletedAt: number | null;
  /** Since when it is tried with few requests at once, to see whether it answers; null when it is not. */
  quarantinedAt: number | null;
}

export interface LaneView {
  settings: LaneSettings | null;
  lanes: { laneKey: string; blocked: boolean; deliveries: LoadedDelivery[] }[];
  hasMore: boolean;
  region: string | null;
}

export interface LaneDeps extends RunHeadDeps {
  loadLane(
    tenantId: string,
    endpointId: string,
    fromKey: string,
    maxKeys: number,
    rowsPerKey: number,
    now: number,
    beforeKey?: string,
  ): Promise<LaneView>;
  /** What is under way, whoever made its claim: of these lane keys, or of all, which reads the whole lane. */
  listInFlight(
    tenantId: string,
    endpointId: string,
    laneKeys: string[] | null,
  ): Promise<{ laneKey: string; lockedUntil: number }[]>;
  /** How much is open in the lane; `limit` where it is more. */
  countOpen(tenantId: string, endpointId: string, limit: number): Promise<number>;
  /** Gives the endpoint back to the queues if this is its quarantine; false when that is to be tried again. Never throws. */
  leaveQuarantine(place: Place, quarantinedAt: number): Promise<boolean>;
  /** Rings for what queues are to do; never fails, never waits for them. */
  ringQueue(calls: DeliveryCall[], delayMs: number): void;
  /** Pumps again, and arms for what comes after. */
  pumpAgain(): Promise<void>;
}

/** What an object remembers of its lane. All of it can be forgotten: the rows are in the ledger, which proves each claim. */
export interface LaneState {
  tenantId: string;
  endpointId: string;
  /** A lane that was moved is another object's, and the ledger gives this one no claim. */
  generation: number;
  /** Lane keys with a request under way in this object, and what payloads of theirs are in memory at most. */
  running: Map<string, number>;
  /** What has ended since it was last seen that this lane is to do the rest. */
  ended: DeliveryCall[];
  /** How many may be, as the settings last said. */
  capacity: number;
  /** How its receiver is tried while it is in quarantine, and when it was last asked whether that may end. */
  drain: Drain | null;
  leftAt: number;
  /** The endpoint's revision when it was last read; when that was last asked while the lane was full, and when it will be. */
  revision: number | null;
  lookedAt: number;
  lookAgainAt: number | null;
  /** How long the lease of a request lasts, as the endpoint last said. */
  leaseMs: number;
  /** Lane keys that a former object or queues have under way, how many of each, and when the first lease ends. All take room of the cap. */
  elsewhere: Map<string, { count: number; lockedUntil: number }>;
  /** The endpoint's revision, and when, at which that was last asked; null for never. */
  elsewhereAsOf: { revision: number; at: number } | null;
  pace: Pace;
  /** Lane keys that wait because of a fault of ours: until when, and how often it has happened. */
  faults: Map<string, { until: number; count: number }>;
  /** Heads that were read and found no room, and when the rate has some. */
  spare: LaneView | null;
  spareAt: number | null;
  /** When its rows were last read, those of `spare` too. */
  readAt: number;
  /** Whether an operator's word stopped it when it was last read. */
  isStanding: boolean;
  /** How many rows of each key are read at once: more while they are used up in one go. */
  rowsPerKey: number;
  /** Where the walk over a lane of many keys goes on, where its last part began, how far it is, and when the next may begin. */
  fromKey: string;
  partFrom: string;
  partsWalked: number;
  /** Whether anybody called since the walk began. */
  calledAgain: boolean;
  walkAgainAt: number;
  /** Whether first attempts may have come since it last looked for them, and whether those go before retries here. */
  isRung: boolean;
  isUnordered: boolean;
  /** The earliest moment at which something is to be done; null when only a wake can bring it. */
  wakeAt: number | null;
  pumping: Promise<void> | null;
  dirty: boolean;
}

const FAULT_MEMORY_MS = 60_000;
/** Until an endpoint has said how long its leases last. */
const DEFAULT_LEASE_MS = 60_000;

export function createLaneState(
  { tenantId, endpointId, generation }: Pick<LaneState, "tenantId" | "endpointId" | "generation">,
  now: number,
): LaneState {
  return {
    tenantId,
    endpointId,
    generation,
    running: new Map(),
    ended: [],
    capacity: 1,
    drain: null,
    leftAt: 0,
    revision: null,
    lookedAt: 0,
    lookAgainAt: null,
    leaseMs: DEFAULT_LEASE_MS,
    elsewhere: new Map(),
    elsewhereAsOf: null,
    // What was requested just before this object was made is unknown: the past second counts as full.
    pace: {
      turns: new Set(
        Array.from({ length: MAX_RATE_PER_SECOND }, (): Turn => ({ begunAt: now, at: now, stage: "sent" })),
      ),
      waiting: [],
    },
    faults: new Map(),
    spare: null,
    spareAt: null,
    readAt: now,
    isStanding: false,
    rowsPerKey: ROWS_PER_KEY,
    fromKey: "",
    partFrom: "",
    partsWalked: 0,
    calledAgain: false,
    walkAgainAt: 0,
    isRung: false,
    isUnordered: false,
    wakeAt: null,
    pumping: null,
    dirty: false,
  };
}

/** Something is to be done at this moment, if not before. */
export function wakeBy(state: LaneState, at: number): void {
  state.wakeAt = Math.min(state.wakeAt ?? Infinity, at);
}

/** The deliveries may have ended otherwise. What is tried again at its time is known for a minute more. */
export function forgetOldFaults({ faults }: LaneState, now: number): void {
  for (const [laneKey, { until }] of faults) if (until < now - FAULT_MEMORY_MS) faults.delete(laneKey);
}
