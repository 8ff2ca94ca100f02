import { maxClaimed, nextClaimAt, nextStartAt, RATE_WINDOW_MS, timesOf, type Turn } from "../../core/lane-pace.ts";
import type { Runtime } from "../runtime.ts";
import type { HeadTurn } from "./run-head.ts";

/** What a lane with a rate is paced by: one log of what was begun and sent, and who waits to make a claim. */
export interface Pace {
  turns: Set<Turn>;
  waiting: (() => void)[];
}

/**
 * A place in the log from now on, for one request. Its claim waits for its turn and until few others are claimed and unsent,
 * its request for its turn once more: some heads wait longer for the ledger than others.
 */
export function takeTurn(
  deps: Pick<Runtime, "now" | "sleep">,
  { turns, waiting }: Pace,
  ratePerSecond: number,
): HeadTurn & { end(): void } {
  const begunAt = deps.now();
  const turn: Turn = { begunAt, at: begunAt, stage: "begun" };
  for (const old of turns) if (old.stage === "sent" && old.at < begunAt - RATE_WINDOW_MS) turns.delete(old);
  turns.add(turn);

  async function comeTo(stage: "claimed" | "sent"): Promise<void> {
    for (;;) {
      const now = deps.now();
      const isClaim = stage === "claimed";
      // Its own place says nothing to it: who comes a second time has not gone the first.
      const others = [...turns].filter((other) => other !== turn);
      const isCrowded = isClaim && timesOf(others, "claimed").length >= maxClaimed(ratePerSecond);
      const at = isClaim
        ? nextClaimAt(ratePerSecond, others, now)
        : nextStartAt(ratePerSecond, timesOf(others, "sent"), now);
      if (isCrowded) await new Promise<void>((resolve) => waiting.push(resolve));
      else if (at > now) await deps.sleep(at - now);
      else break;
    }
    Object.assign(turn, { stage, at: deps.now() });
    // Who has come here before may have been forgotten since.
    turns.add(turn);
  }

  return {
    beforeClaim: () => comeTo("claimed"),
    async beforeRequest() {
      await comeTo("sent");
      waiting.shift()?.();
    },
    end() {
      if (turn.stage === "sent") return;
      turns.delete(turn);
      waiting.shift()?.();
    },
  };
}
