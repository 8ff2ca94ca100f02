import { DurableObject } from "cloudflare:workers";
import { createWatchState, tick, type WatchState } from "../app/watch/tick.ts";
import { composeWatch } from "../compose.ts";
import { logFault } from "../log-fault.ts";

const REPORTS_UNTIL = "reports-until";

/**
 * One a shard, named `watchdog:<shard>`. What it looks after are rows; on disk it holds its alarm and until when it must
 * wait for reports, and forgetting its memory costs doubled doorbells.
 */
export class Watchdog extends DurableObject<Env> {
  #state: WatchState | null = null;

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

  /** Never throws: an alarm that throws six times is dropped for good. */
  override async alarm(): Promise<void> {
    const shard = this.ctx.id.name!.slice("watchdog:".length);
    let nextAt: number | null = Date.now() + 30_000;
    try {
      this.#state ??= createWatchState(Date.now());
      const deps = { ...composeWatch(this.env, this.ctx, shard), reportsUntil: () => this.reportsUntil() };
      nextAt = await tick(deps, this.#state);
    } catch (error) {
      logFault("watchdog", error);
    }
    if (nextAt !== null) await this.arm(Math.max(nextAt - Date.now(), 1));
  }
}
