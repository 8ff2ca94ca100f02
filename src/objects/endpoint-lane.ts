import { DurableObject } from "cloudflare:workers";
import { restsUntil } from "../app/lane/drain.ts";
import { createLaneState, type LaneDeps, type LaneState } from "../app/lane/lane-state.ts";
import { pump } from "../app/lane/pump.ts";
import { composeLane, handOverFromObject } from "../compose.ts";

/** Waits shorter than this are a timer's: an alarm costs a row, and the dead-man alarm stands behind the timer. */
const MAX_TIMER_MS = 2_000;
/** An alarm that lies this far back has been lost. */
const LOST_MS = 60_000;

/**
 * The lane of one endpoint, named `lane:<shard>:<tenant>:<endpoint>:<generation>`. A scheduler with an empty disk: order,
 * heads, blocks and leases are rows, and what it forgets when it is evicted one query brings back.
 */
export class EndpointLane extends DurableObject<Env> {
  readonly #deps: LaneDeps;
  readonly #shard: string;
  readonly #state: LaneState;
  #timer: number | null = null;

  constructor(context: DurableObjectState, env: Env) {
    super(context, env);
    const [, shard, tenantId, endpointId, generation] = context.id.name!.split(":");
    this.#shard = shard!;
    this.#deps = composeLane(env, context, shard!, () => this.#pump());
    this.#state = createLaneState(
      { tenantId: tenantId!, endpointId: endpointId!, generation: Number(generation) },
      Date.now(),
    );
  }

  /**
   * Something may be due. Answers once it has looked, which whoever wakes many waits for; requests go on in the background.
   * The answer is until when no new work brings it to anything, in ms since 1970; null when it may.
   */
  async wake(): Promise<number | null> {
    const looked = this.#pump(true);
    this.ctx.waitUntil(looked);
    await looked;
    return restsUntil(this.#state, Date.now());
  }

  override async alarm(): Promise<void> {
    await this.#pump();
  }

  /** Never throws, and never waits for a request: those go on in the background and come back here. */
  async #pump(isRung = false): Promise<void> {
    const wakeAt = await pump(this.#deps, this.#state, isRung);
    clearTimeout(this.#timer);
    this.ctx.waitUntil(handOverFromObject(this.env, this.#shard, this.#state.running.size === 0));
    if (wakeAt === null) return;
    const waitMs = wakeAt - Date.now();
    if (waitMs < MAX_TIMER_MS) this.#timer = setTimeout(() => void this.#pump(), Math.max(waitMs, 1));
    await this.#armBy(waitMs < MAX_TIMER_MS ? Date.now() + this.#state.leaseMs : wakeAt);
  }

  /** Only ever earlier. One that nothing needs any more fires, finds nothing open, and is not set again. */
  async #armBy(at: number): Promise<void> {
    try {
      const set = await this.ctx.storage.getAlarm();
      if (set === null || set > at || set < Date.now() - LOST_MS) await this.ctx.storage.setAlarm(at);
    } catch (error) {
      console.error(JSON.stringify({ level: "error", event: "fault", what: "arm lane", error: String(error) }));
    }
  }
}
