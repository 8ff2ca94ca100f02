import { decideClaim } from "../../core/claim.ts";
import { deliveryId, parseDeliveryId, type TenantDeliveryRef } from "../../core/ids.ts";
import { isAnswer, type FinalOutcome } from "../../core/outcome.ts";
import type { Runtime } from "../runtime.ts";
import { callFor, MAX_RING_DELAY_MS, type DeliveryCall } from "./delivery-call.ts";
import { keepReport } from "./keep-report.ts";
import { createPayloadReader, type PayloadReader } from "./payload-reader.ts";
import { prepare, type LoadedDelivery, type PrepareDeps, type Prepared } from "./prepare.ts";
import { makeRequest, type ClaimedAttempt, type SendDeps } from "./send-attempt.ts";
import { stillClaimed, type StillClaimedDeps } from "./still-claimed.ts";
import { takeRoom, type TakeRoomDeps } from "./take-room.ts";

export interface Claim extends TenantDeliveryRef {
  attemptNumber: number;
  token: string;
  endpointRevision: number;
  signingSecretIds: string[];
  workerId: string;
  relayRegion: string | null;
  leaseMs: number;
}

interface End extends TenantDeliveryRef {
  status: "failed" | "expired";
  finalOutcome: FinalOutcome;
}

export interface DeliverDeps extends PrepareDeps, SendDeps, StillClaimedDeps, TakeRoomDeps, Runtime {
  loadDeliveries(refs: TenantDeliveryRef[]): Promise<{ deliveries: LoadedDelivery[]; region: string | null }>;
  claimDeliveries(claims: Claim[], now: number): Promise<Set<string>>;
  holdDeliveries(holds: (TenantDeliveryRef & { holdUntil: number })[]): Promise<void>;
  endDeliveries(ends: End[], now: number): Promise<void>;
  createToken(): string;
  workerId: string;
  /** What the settings say of where this runs; null leaves it to the ledger. */
  relayRegion: string | null;
  background(work: Promise<unknown>): void;
}

/** A delivery's lease outlasts its deadline by this much, which the close has to itself. */
export const LEASE_MARGIN_MS = 30_000;
const CROWDED_DELAY_MS = 5_000;

type Due = { delivery: LoadedDelivery; attemptNumber: number; region: string | null };

/**
 * Answers doorbells: makes the attempts that are due and settles what is not. Returns when everything is decided and the
 * sends are on their way; their leases are the recovery. Throws when the ledger cannot be read, having done nothing.
 */
export async function deliver(deps: DeliverDeps, calls: DeliveryCall[]): Promise<void> {
  const wanted = new Map<string, number>();
  const refs: TenantDeliveryRef[] = [];
  for (const { tenantId, deliveryId: id, attemptNumber } of calls) {
    const ref = parseDeliveryId(id);
    if (!ref.ok) continue;
    if (!wanted.has(id)) refs.push({ tenantId, ...ref.value });
    // Of two doorbells for one delivery the earlier attempt's is the stale one.
    wanted.set(id, Math.max(wanted.get(id) ?? 0, attemptNumber));
  }
  if (refs.length === 0) return;
  const { deliveries, region } = await deps.loadDeliveries(refs);
  const due = await settleUndue(
    deps,
    deliveries.map((delivery) => ({ delivery, region, attemptNumber: wanted.get(deliveryId(delivery))! })),
  );

  const readPayload = createPayloadReader(deps.getPayload);
  const kindOf = ({ delivery, attemptNumber }: Due) => `${delivery.endpointId}${attemptNumber > 1 ? " again" : ""}`;
  for (const jobs of Map.groupBy(due, kindOf).values()) {
    deps.background(attemptAll(deps, readPayload, jobs).catch((error) => deps.logFault("deliver", error)));
  }
}

/** Holds, ends and postpones what cannot be attempted now; gives back the rest. */
async function settleUndue(deps: DeliverDeps, jobs: Due[]): Promise<Due[]> {
  const now = deps.now();
  const due: Due[] = [];
  const holds: (TenantDeliveryRef & { holdUntil: number })[] = [];
  const ends: End[] = [];
  for (const job of jobs) {
    const { delivery, attemptNumber } = job;
    const decision = decideClaim(
      {
        ...delivery,
        scheduledAt: Math.max(delivery.scheduledAt ?? now, delivery.endpoint.resumedAt ?? 0),
        held: delivery.laneKey !== null,
        endpointRoute: delivery.endpoint.route,
        endpointPaused: delivery.endpoint.pausedAt !== null,
        endpointDisabled: delivery.endpoint.disabledAt !== null,
        endpointDeleted: delivery.endpoint.deletedAt !== null,
      },
      attemptNumber,
      now,
    );
    switch (decision.decision) {
      case "attempt":
        due.push(job);
        break;
      case "wait":
        if (decision.delayMs <= MAX_RING_DELAY_MS) deps.ringLater([callOf(job)], decision.delayMs);
        break;
      case "hold":
        holds.push({ ...refOf(delivery), holdUntil: decision.holdUntil });
        break;
      case "end":
        ends.push({ ...refOf(delivery), status: decision.status, finalOutcome: decision.finalOutcome });
        break;
      case "wake":
        deps.wakeLane({ ...refOf(delivery), generation: delivery.endpoint.laneGeneration });
        break;
      case "drop":
        break;
    }
  }
  if (holds.length > 0) await deps.holdDeliveries(holds);
  if (ends.length > 0) await deps.endDeliveries(ends, now);
  return due;
}

/** Due attempts of one endpoint, all of them first ones or all retries. What found no room is left to the ledger. */
async function attemptAll(deps: DeliverDeps, readPayload: PayloadReader, jobs: Due[]): Promise<void> {
  const sends: Promise<void>[] = [];
  const rest = await takeRoom(deps, jobs, (some) => void sends.push(attemptSome(deps, readPayload, some)));
  if (rest.length > 0) deps.ringLater(rest.map(callOf), CROWDED_DELAY_MS);
  await Promise.all(sends);
}

/** Prepare → claim → send → close for jobs that have room. */
async function attemptSome(deps: DeliverDeps, readPayload: PayloadReader, jobs: Due[]): Promise<void> {
  const release = ({ delivery, attemptNumber }: Due) =>
    deps.inFlight.release(delivery, delivery.event.payloadSize, attemptNumber > 1);
  let claimed: { job: Due; prepared: Prepared; claim: Claim }[] = [];
  let startedAt = 0;
  try {
    // Time has passed while they waited for room: what has ended meanwhile is not attempted.
    const prepared = await prepareAll(deps, readPayload, await settleUndue(deps, jobs));
    startedAt = deps.now();
    const won = await claimAll(deps, prepared, startedAt);
    const claims = won.map(({ claim }) => claim);
    const still = await stillClaimed(deps, claims, startedAt);
    claimed = won.filter(({ claim }) => still.has(claim));
    const late = won.filter(({ claim }) => !still.has(claim)).map(({ job }) => callOf(job));
    if (late.length > 0) deps.ringLater(late, CROWDED_DELAY_MS);
  } catch (error) {
    // Nothing of theirs was sent, so nothing is spent: the rows are due and ring again.
    deps.logFault("claim", error);
    deps.ringLater(jobs.map(callOf), CROWDED_DELAY_MS);
  }
  const sending = new Set(claimed.map(({ job }) => job));
  jobs.filter((job) => !sending.has(job)).forEach(release);
  await Promise.all(
    claimed.map(({ job, prepared, claim }) =>
      attemptOne(deps, { delivery: job.delivery, ...claim, startedAt, prepared }).finally(() => release(job)),
    ),
  );
}

async function attemptOne(deps: DeliverDeps, attempt: ClaimedAttempt): Promise<void> {
  const place = attempt.delivery;
  const begunAt = deps.now();
  deps.inFlight.begin(place, begunAt);
  const report = await makeRequest(deps, attempt);
  deps.inFlight.end(place, begunAt, isAnswer(report.wire) ? report.respondedAt : null);
  await keepReport(deps, report);
}

async function prepareAll(
  deps: DeliverDeps,
  readPayload: PayloadReader,
  jobs: Due[],
): Promise<{ job: Due; prepared: Prepared }[]> {
  const ready: { job: Due; prepared: Prepared }[] = [];
  const ends: End[] = [];
  await Promise.all(
    jobs.map(async (job) => {
      const result = await prepare(deps, readPayload, job.delivery);
      if (result.kind === "ready") ready.push({ job, prepared: result.prepared });
      if (result.kind === "refused") {
        ends.push({ ...refOf(job.delivery), status: "failed", finalOutcome: result.finalOutcome });
      }
      if (result.kind === "fault") deps.ringLater([callOf(job)], result.delayMs);
    }),
  );
  if (ends.length > 0) await deps.endDeliveries(ends, deps.now());
  return ready;
}

async function claimAll(deps: DeliverDeps, jobs: { job: Due; prepared: Prepared }[], now: number) {
  if (jobs.length === 0) return [];
  const wanted = jobs.map(({ job, prepared }) => ({ job, prepared, claim: claimFor(deps, job, prepared) }));
  const claims = wanted.map(({ claim }) => claim);
  // A claim whose answer was lost is taken up by its token.
  const tokens = await deps.claimDeliveries(claims, now).catch(() => deps.claimDeliveries(claims, now));
  // Lost to somebody else, or the endpoint has changed since it was read: the next ring sees which.
  const lost = wanted.filter(({ claim }) => !tokens.has(claim.token));
  if (lost.length > 0) {
    deps.ringLater(
      lost.map(({ job }) => callOf(job)),
      1_000,
    );
  }
  return wanted.filter(({ claim }) => tokens.has(claim.token));
}

/** The claim of a prepared attempt, its token chosen before it is written. */
export function claimFor(
  deps: Pick<DeliverDeps, "createToken" | "workerId" | "relayRegion">,
  { delivery, attemptNumber, region }: Due,
  prepared: Prepared,
): Claim {
  return {
    ...refOf(delivery),
    attemptNumber,
    token: deps.createToken(),
    endpointRevision: delivery.endpoint.revision,
    signingSecretIds: prepared.secrets.map(({ id }) => id),
    workerId: deps.workerId,
    relayRegion: deps.relayRegion ?? region,
    leaseMs: delivery.endpoint.timeoutMs + LEASE_MARGIN_MS,
  };
}

const callOf = ({ delivery, attemptNumber }: Due): DeliveryCall => callFor(delivery, attemptNumber);

function refOf({ tenantId, eventId, endpointId, replayNo }: TenantDeliveryRef): TenantDeliveryRef {
  return { tenantId, eventId, endpointId, replayNo };
}
