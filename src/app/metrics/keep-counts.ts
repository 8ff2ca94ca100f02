import { addCounts, type CountBatch, type Counts } from "../../core/counts.ts";
import type { Runtime } from "../runtime.ts";

/** On disk. */
export interface KeptCounts {
  totals: Counts;
  /** By isolate: the number of its last batch that is in the totals, and when that came. */
  isolates: Record<string, [number: number, heardAt: number]>;
  tickedAt: number | null;
}

export interface KeepCountsDeps extends Pick<Runtime, "now"> {
  read(): Promise<KeptCounts | undefined>;
  /** An answer that leaves after this is one that the disk stands behind. */
  write(kept: KeptCounts): Promise<void>;
  later(delayMs: number, work: () => void): void;
  logFault(what: string, error: unknown): void;
}

export interface CountKeeper {
  /**
   * Takes what it has not taken before. Answers up to which number of this isolate's all is on disk. Who comes again soon, with what
   * is not, need not be waited for with a timer, which keeps an object awake.
   */
  take(isolateId: string, batches: CountBatch[], comesAgain?: boolean): Promise<number>;
  /** The watchdog has done its work once more. */
  ticked(): Promise<void>;
  /** What is on disk: nobody has seen a count that a crash could take back. */
  read(): Promise<Pick<KeptCounts, "totals" | "tickedAt">>;
}

const WRITE_INTERVAL_MS = 10_000;
/** An isolate that has not been heard of for so long is gone, or has begun anew. */
const FORGET_AFTER_MS = 24 * 3_600_000;

/**
 * The totals of one shard, written at most once in ten seconds, and before each look at them. What is taken between two writes is
 * offered again by its isolate should this object die meanwhile.
 */
export function createCountKeeper(deps: KeepCountsDeps): CountKeeper {
  let loading: Promise<KeptCounts> | null = null;
  let onDisk: KeptCounts["isolates"] = {};
  let writtenAt: number | null = null;
  let isDirty = false;
  let isTimed = false;

  function load(): Promise<KeptCounts> {
    loading ??= deps.read().then((found = { totals: {}, isolates: {}, tickedAt: null }) => {
      onDisk = { ...found.isolates };
      return structuredClone(found);
    });
    // One that failed is tried again by the next.
    loading.catch(() => (loading = null));
    return loading;
  }

  async function write(kept: KeptCounts): Promise<void> {
    const now = deps.now();
    for (const [id, [, heardAt]] of Object.entries(kept.isolates)) {
      if (heardAt < now - FORGET_AFTER_MS) delete kept.isolates[id];
    }
    const copy = structuredClone(kept);
    isDirty = false;
    writtenAt = now;
    try {
      await deps.write(copy);
      onDisk = copy.isolates;
    } catch (error) {
      isDirty = true;
      throw error;
    }
  }

  const waitMs = () => (writtenAt === null ? 0 : Math.max(0, writtenAt + WRITE_INTERVAL_MS - deps.now()));

  return {
    async take(isolateId, batches, comesAgain = false) {
      const kept = await load();
      const [last] = kept.isolates[isolateId] ?? [0];
      const news = batches.filter(({ number }) => number > last);
      for (const { counts } of news) addCounts(kept.totals, counts);
      if (news.length > 0) {
        kept.isolates[isolateId] = [news.at(-1)!.number, deps.now()];
        isDirty = true;
      }
      if (isDirty && waitMs() === 0) await write(kept);
      else if (isDirty && !isTimed && !comesAgain) {
        isTimed = true;
        deps.later(waitMs(), () => {
          isTimed = false;
          if (isDirty) void write(kept).catch((error) => deps.logFault("write counts", error));
        });
      }
      return onDisk[isolateId]?.[0] ?? 0;
    },

    async ticked() {
      const kept = await load();
      kept.tickedAt = deps.now();
      isDirty = true;
      if (waitMs() === 0) await write(kept);
    },

    async read() {
      const kept = await load();
      if (isDirty) await write(kept);
      return { totals: kept.totals, tickedAt: kept.tickedAt };
    },
  };
}
