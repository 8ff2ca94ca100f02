import type { LaneSettings } from "./lane-state.ts";
import { isAsClaimed } from "../../core/lane.ts";
import type { DeliveryRef } from "../../core/ids.ts";
import { claimFor, type Claim, type DeliverDeps } from "../deliver/deliver.ts";
import { CLAIM_IS_OLD_MS, CLAIM_IS_STALE_MS } from "../deliver/still-claimed.ts";
import { keepReport } from "../deliver/keep-report.ts";
import { prepare, type LoadedDelivery, type Prepared } from "../deliver/prepare.ts";
import type { PayloadReader } from "../deliver/payload-reader.ts";
import type { RecordAttemptDeps } from "../deliver/record-attempt.ts";
import type { AttemptReport } from "../deliver/report.ts";
import { makeRequest } from "../deliver/send-attempt.ts";
import { createReadAhead } from "./read-ahead.ts";

type Closing = Parameters<RecordAttemptDeps["closeAttempts"]>[0][number];

export interface RunHeadDeps extends DeliverDeps {
  claimHead(claim: Claim, generation: number, now: number): Promise<boolean>;
  closeAndClaim(closing: Closing, claim: Claim, generation: number, now: number): Promise<boolean>;
  /** Work that takes no longer than this, or an error. */
  within<T>(ms: number, work: Promise<T>): Promise<T>;
  /** How the lane is to be run; null when there is no such endpoint. */
  loadSettings(tenantId: string, endpointId: string): Promise<LaneSettings | null>;
  endHead(
    ref: DeliveryRef & { tenantId: string; endpoint: { revision: number } },
    end: { status: "failed" | "expired" | "dead_letter"; finalOutcome: string },
    now: number,
  ): Promise<void>;
}

/** What a request waits for besides: a rate. */
export interface HeadTurn {
  beforeClaim(): Promise<void>;
  /** Resolves when the request may leave, which it then does. May be waited for again, where it has not. */
  beforeRequest(): Promise<void>;
}

/** A store that has not answered by then is taken to be away. */
export const STORE_TIMEOUT_MS = 20_000;

/** What was read longer ago than this is read anew before it is attempted: its event's source may have other keys by now. */
export const ROWS_ARE_OLD_MS = 10_000;

/** A delivery that could be attempted: prepared, with the claim it would be attempted under. */
interface Ready {
  delivery: LoadedDelivery;
  prepared: Prepared;
  claim: Claim;
}

/**
 * Attempts the head of a lane key, and goes on with what stands behind it for as long as each ends and the next was loaded:
 * the close of one and the claim of the next are one trip, and the next is prepared while the request is out. Says `fault`
 * when the relay itself was kept from a request, `lost` when the ledger does not agree that this is a head that may be attempted;
 * every other end leaves it to the ledger what comes next.
 */
export async function runHead(
  deps: RunHeadDeps,
  deliveries: LoadedDelivery[],
  readAt: number,
  region: string | null,
  generation: number,
  turn: HeadTurn | null,
  onReport: (report: AttemptReport) => void = () => {},
): Promise<"done" | "lost" | "fault"> {
  const [head, ...following] = deliveries;
  const getPayload = createReadAhead(deps.getPayload, deliveries);
  const first = await getReady(deps, getPayload, head!, region);
  if (first === "fault") return "fault";
  if (first === "ended") return "done";
  await turn?.beforeClaim();
  let startedAt = deps.now();
  // A claim whose answer was lost is taken up by its token.
  const claimFirst = () => deps.within(STORE_TIMEOUT_MS, deps.claimHead(first.claim, generation, startedAt));
  if (!(await claimFirst().catch(claimFirst))) return "lost";

  for (let current: Ready = first; ;) {
    if (!(await comesToLeave(deps, current, generation, startedAt, turn))) {
      // Where the ledger is away for this too, its lease ends.
      await deps.giveBack(current.claim, deps.now()).catch((error) => deps.logFault("give back a claim", error));
      return "lost";
    }
    const behind = deps.now() - readAt > ROWS_ARE_OLD_MS ? undefined : following.shift();
    const [report, next] = await Promise.all([
      makeRequest(deps, { ...current, ...current.claim, startedAt }),
      behind && getReadyMeanwhile(behind),
    ]);
    onReport(report);
    const claimable = next && next !== "fault" && next !== "ended" ? next : null;
    let isClaimed = false;
    await keepReport({ ...deps, closeAttempts, wakeLane: () => {} }, report);
    if (!isClaimed) return "done";
    current = claimable!;

    async function closeAttempts(closings: Closing[]): Promise<void> {
      if (claimable === null) return deps.closeAttempts(closings);
      startedAt = deps.now();
      const close = () => deps.closeAndClaim(closings[0]!, claimable.claim, generation, startedAt);
      isClaimed = await close().catch(close);
    }
  }

  /** Once the request has left: its way out comes before whatever this does. */
  async function getReadyMeanwhile(behind: LoadedDelivery) {
    await deps.sleep(0);
    return getReady(deps, getPayload, behind, region).catch(() => null);
  }
}

/**
 * Waits until the request may leave: its turn has come and its claim is known to hold, both now. One that was proved a while
 * ago is proved once more, and what has waited for the ledger meanwhile waits for its turn again: others may have gone. False when
 * it may not leave any more.
 */
async function comesToLeave(
  deps: RunHeadDeps,
  current: Ready,
  generation: number,
  startedAt: number,
  turn: HeadTurn | null,
): Promise<boolean> {
  for (let provedAt = startedAt; ;) {
    await turn?.beforeRequest();
    const now = deps.now();
    if (now - startedAt > CLAIM_IS_STALE_MS) return false;
    if (now - provedAt <= CLAIM_IS_OLD_MS) return true;
    if (!(await isStillAsClaimed(deps, current, generation))) return false;
    provedAt = now;
  }
}

/** Whether the endpoint is as the claim had it; one who cannot be asked, twice, has not said so. */
async function isStillAsClaimed(deps: RunHeadDeps, { claim }: Ready, generation: number): Promise<boolean> {
  const ask = () => deps.within(STORE_TIMEOUT_MS, deps.loadSettings(claim.tenantId, claim.endpointId));
  const settings = await ask()
    .catch(ask)
    .catch(() => null);
  return isAsClaimed(settings, { revision: claim.endpointRevision, generation });
}

/** What is refused for good is ended here: there will be no request. */
async function getReady(
  deps: RunHeadDeps,
  getPayload: PayloadReader,
  delivery: LoadedDelivery,
  region: string | null,
): Promise<Ready | "ended" | "fault"> {
  const result = await deps.within(STORE_TIMEOUT_MS, prepare(deps, getPayload, delivery));
  if (result.kind === "fault") return "fault";
  if (result.kind === "refused") {
    await deps.endHead(delivery, { status: "failed", finalOutcome: result.finalOutcome }, deps.now());
    return "ended";
  }
  const due = { delivery, attemptNumber: delivery.attemptCount + 1, region };
  return { delivery, prepared: result.prepared, claim: claimFor(deps, due, result.prepared) };
}
