import { addCounts, type CountBatch, type Counts } from "../../core/counts.ts";

/** What an isolate has counted for one shard and nobody else has on disk yet. */
export interface Tally {
  add(counts: Counts): void;
  hasMore(): boolean;
  /** All that is not known to be on disk, oldest first, the newest in a batch of its own from now on. */
  offer(): CountBatch[];
  /** The batches up to this number are on disk. */
  confirm(number: number): void;
}

/** While nobody takes them, what is counted goes into the last: memory is bounded by the number of series. */
const MAX_BATCHES = 20;

/**
 * A batch never changes once it was offered, since the answer to an offer may be lost: whoever was offered it again by the same
 * number knows it.
 */
export function createTally(): Tally {
  let fresh: Counts = {};
  let batches: CountBatch[] = [];
  let last = 0;
  return {
    add: (counts) => addCounts(fresh, counts),
    hasMore: () => batches.length > 0 || Object.keys(fresh).length > 0,
    offer() {
      if (Object.keys(fresh).length > 0 && batches.length < MAX_BATCHES) {
        batches.push({ number: ++last, counts: fresh });
        fresh = {};
      }
      return [...batches];
    },
    confirm(number) {
      batches = batches.filter((batch) => batch.number > number);
    },
  };
}
