import { createRandom } from "../../../support/random.ts";
import { wholeNumber } from "./random.ts";

/**
 * When a relay is killed. `any`: after a while. `acknowledged`: as soon as a publish was answered, before its doorbells ring.
 * `held`: a receiver has a request and has not answered. `answered`: its answer has left. `starting`: before the relay is ready.
 * `recovering`: in the first second after that. `runtime`: its Worker alone, which the relay starts again.
 */
const KINDS = ["any", "acknowledged", "held", "answered", "recovering", "runtime", "starting"] as const;

export interface PlannedKill {
  round: number;
  kind: (typeof KINDS)[number];
  /** After the relay was ready; what the kind waits for is waited for from then on. */
  afterMs: number;
  /** Of a start's usual time, for `starting`. */
  share: number;
  /** Whose request `held` and `answered` wait for: the beginning of an endpoint's name. */
  endpoint: string;
}

/**
 * Each kind once in seven rounds, in an order and at moments that the seed decides; and before them the first start of all,
 * which makes the tables.
 */
export function planKills(seed: number, rounds: number): { first: PlannedKill; kills: PlannedKill[] } {
  const random = createRandom(seed);
  const first: PlannedKill = { round: 0, kind: "starting", afterMs: 0, share: 0.3 + 0.7 * random(), endpoint: "" };
  const kills: PlannedKill[] = [];
  let kinds: PlannedKill["kind"][] = [];
  for (let round = 1; round <= rounds; round++) {
    if (kinds.length === 0) kinds = [...KINDS];
    // The first relay has something to set up.
    const choices = round === 1 ? kinds.length - 1 : kinds.length;
    const [kind] = kinds.splice(wholeNumber(random, 0, choices), 1);
    kills.push({
      round,
      kind: kind!,
      afterMs: wholeNumber(random, 0, kind === "any" ? 1_500 : 1_000),
      share: random(),
      endpoint: ["unordered", "strict", "keyed"][wholeNumber(random, 0, 3)]!,
    });
  }
  return { first, kills };
}
