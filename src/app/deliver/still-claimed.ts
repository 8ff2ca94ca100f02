import type { TenantDeliveryRef } from "../../core/ids.ts";
import type { Runtime } from "../runtime.ts";
import type { LoadedDelivery } from "./prepare.ts";

interface Claim extends TenantDeliveryRef {
  attemptNumber: number;
  token: string;
  endpointRevision: number;
}

export interface StillClaimedDeps extends Pick<Runtime, "now"> {
  loadDeliveries(refs: Claim[]): Promise<{ deliveries: LoadedDelivery[] }>;
  /** Takes a claim back under which no request was made, with its attempt; the delivery is as before it. */
  giveBack(claim: Claim, now: number): Promise<void>;
  logFault(what: string, error: unknown): void;
}

/** A claim whose answer came this late, or whose turn did, is proved once more before its request is made. */
export const CLAIM_IS_OLD_MS = 1_000;
/** By then too much of its lease is gone: the request might outlive it. */
export const CLAIM_IS_STALE_MS = 10_000;

/**
 * Of claims whose answer may have come late, those that may be sent all the same. The ledger is asked once more whether each
 * is still this one's and its endpoint as it was: somebody may have taken it over, or paused the endpoint. What may not be
 * sent is given back, and due again.
 */
export async function stillClaimed<T extends Claim>(
  deps: StillClaimedDeps,
  claims: T[],
  startedAt: number,
): Promise<Set<T>> {
  const ageMs = deps.now() - startedAt;
  if (ageMs <= CLAIM_IS_OLD_MS || claims.length === 0) return new Set(claims);
  const found = ageMs > CLAIM_IS_STALE_MS ? [] : await load(deps, claims);
  const endpoints = new Map(found.map(({ token, endpoint }) => [token, endpoint]));
  const still = claims.filter(({ token, endpointRevision }) => {
    const endpoint = endpoints.get(token);
    // A suspension changes no endpoint's revision.
    return endpoint?.revision === endpointRevision && endpoint.pausedAt === null;
  });
  for (const claim of claims) {
    if (still.includes(claim)) continue;
    // Where the ledger is away for this too, its lease ends.
    await deps.giveBack(claim, deps.now()).catch((error) => deps.logFault("give back a claim", error));
  }
  return new Set(still);
}

/** A ledger that cannot be asked has not said that they may be sent. */
async function load(deps: StillClaimedDeps, claims: Claim[]): Promise<LoadedDelivery[]> {
  try {
    return (await deps.loadDeliveries(claims)).deliveries;
  } catch (error) {
    deps.logFault("prove late claims", error);
    return [];
  }
}
