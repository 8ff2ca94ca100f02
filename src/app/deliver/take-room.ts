import { isHanging, isStuck } from "../../core/quarantine.ts";
import type { Runtime } from "../runtime.ts";
import type { InFlight, Place } from "./in-flight.ts";
import type { LoadedDelivery } from "./prepare.ts";

export interface TakeRoomDeps extends Pick<Runtime, "now" | "sleep"> {
  inFlight: InFlight;
  /** Routes an endpoint that hangs to its lane. Never fails: who meets it again tries again. */
  quarantine(place: Place, seen: { url: string; inFlight: number; oldestMs: number }): Promise<void>;
}

/** How long deliveries wait in memory for room before they are left to the ledger again. */
const MAX_ROOM_WAIT_MS = 10_000;
/** What is freed meanwhile is claimed in one trip; waiting longer leaves room empty that others wait for. */
const ROOM_POLL_MS = 20;

/**
 * Starts jobs of one endpoint, all first attempts or all retries, as fast as there is room for them in this isolate; gives
 * back those for which there was none. An endpoint that has answered nothing lately is not waited for, and one that hangs is
 * taken out of the way.
 */
export async function takeRoom<Job extends { delivery: LoadedDelivery; attemptNumber: number }>(
  deps: TakeRoomDeps,
  jobs: Job[],
  start: (jobs: Job[]) => void,
): Promise<Job[]> {
  const { delivery: place, attemptNumber } = jobs[0]!;
  const isRetry = attemptNumber > 1;
  const cameAt = deps.now();
  let rest = jobs;
  let isCounted = false;
  while (rest.length > 0) {
    const now = deps.now();
    const sizes = rest.map(({ delivery }) => delivery.event.payloadSize);
    const room = deps.inFlight.reserve(place, sizes, isRetry, now);
    if (room > 0) {
      start(rest.slice(0, room));
      rest = rest.slice(room);
      continue;
    }
    const standing = deps.inFlight.standingOf(place);
    if (standing !== null && isHanging(standing, place.endpoint.timeoutMs, now)) {
      const oldestMs = now - Math.min(...standing.startedAt);
      await deps.quarantine(place, { url: place.endpoint.url, inFlight: standing.startedAt.length, oldestMs });
      break;
    }
    if (isStuck(standing, now) || now - cameAt >= MAX_ROOM_WAIT_MS) break;
    if (!isRetry && !isCounted) deps.inFlight.countWaiting(place, 1);
    isCounted = !isRetry;
    await deps.sleep(ROOM_POLL_MS);
  }
  if (isCounted) deps.inFlight.countWaiting(place, -1);
  return rest;
}
