import { DurableObject } from "cloudflare:workers";
import { createWatchState, tick, type WatchState } from "../app/watch/tick.ts";
import { createCountKeeper, type KeptCounts } from "../app/metrics/keep-counts.ts";
import { composeWatch, isCounting, keepOwn } from "../compose.ts";
import type { CountBatch } from "../core/counts.ts";
import { logFault } from "../log-fault.ts";

const REPORTS_UNTIL = "reports-until";
const COUNTS = "counts";

/**
 * One a shard, named `watchdog:<shard>`. What it looks after are rows; on disk it holds its alarm, until when it must
 * wait for reports, and what all isolates have counted; forgetting its memory costs doubled doorbells.
 */
export class Watchdog extends DurableObject<Env> {
  #state: WatchState | null = null;
  readonly #counts = createCountKeeper({
    now: () => Date.now(),
    read: () => this.ctx.storage.get<KeptCounts>(COUNTS),
    write: (kept) => this.ctx.storage.put(COUNTS, kept),
    later: (delayMs, work) => void setTimeout(work, delayMs),
    logFault,
  });

  /** Sees to it that there is a tick no later than after `delayMs`. */
  async arm(delayMs: number): Promise<void> {
    const at = Date.now() + Math.max(delayMs, 1);
    const set = await this.ctx.storage.getAlarm();
    // An alarm that lies in the past may have been lost with a reset.
    if (set === null || set > at || set < Date.now() - 10_000) await this.ctx.storage.setAlarm(at);
  }

  /**
   * A report of an attempt is on its way to the ledger by another road, and will have been tried again by then: until then
   * no lease is taken for abandoned. On disk, since forgetting it would make a request twice.
   */
  async awaitReports(until: number): Promise<void> {
    if (until > (await this.reportsUntil())) await this.ctx.storage.put(REPORTS_UNTIL, until);
  }

  async reportsUntil(): Promise<number> {
    return (await this.ctx.storage.get<number>(REPORTS_UNTIL)) ?? 0;
  }

  /** Adds what an isolate has counted and is not in yet. Answers up to which of its batches all is on disk. */
  takeCounts(isolateId: string, batches: CountBatch[], comesAgain = false): Promise<number> {
    return this.#counts.take(isolateId, batches, comesAgain);
  }

  readCounts(): Promise<Pick<KeptCounts, "totals" | "tickedAt">> {
    return this.#counts.read();
  }

  /** Never throws: an alarm that throws six times is dropped for good. */
  override async alarm(): Promise<void> {
    const shard = this.ctx.id.name!.slice("watchdog:".length);
    let nextAt: number | null = Date.now() + 30_000;
    try {
      this.#state ??= createWatchState(Date.now());
      const deps = { ...composeWatch(this.env, this.ctx, shard), reportsUntil: () => this.reportsUntil() };
      nextAt = await tick(deps, this.#state);
      if (isCounting(this.env)) await this.#noteTick(shard);
    } catch (error) {
      logFault("watchdog", error);
    }
    if (nextAt !== null) await this.arm(Math.max(nextAt - Date.now(), 1));
  }

  async #noteTick(shard: string): Promise<void> {
    try {
      await keepOwn(shard, this.#counts);
      await this.#counts.ticked();
    } catch (error) {
      logFault("watchdog: keep counts", error);
    }
  }
}
