import { seriesOf, type Counts } from "./counts.ts";
import type { Family, Sample } from "./exposition.ts";

interface Counted {
  name: string;
  help: string;
  /** A counter's. */
  labels?: string[];
  /** Of a counter, series that are there from the beginning: what begins at 1 has no increase that anybody sees. */
  known?: string[][];
  /** Upper bounds of a histogram, in seconds. */
  bounds?: readonly number[];
}

export const ATTEMPTS = "hooklane_attempts_total";
export const ENDED = "hooklane_deliveries_ended_total";
export const PUBLISHES = "hooklane_publishes_total";
export const LAG = "hooklane_delivery_lag_seconds";
export const ACK = "hooklane_publish_ack_seconds";

export const LAG_BOUNDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800] as const;
export const ACK_BOUNDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

const COUNTED: Counted[] = [
  {
    name: ATTEMPTS,
    help: "Requests to endpoints that are on record, by outcome. error_class is empty for a success.",
    labels: ["outcome_class", "error_class"],
    known: [
      ["success", ""],
      ["unreachable", "timeout"],
      ["unreachable", "internal"],
      ["unreachable", "abandoned"],
    ],
  },
  {
    name: ENDED,
    help: "Deliveries that an attempt, or the lack of one, has ended.",
    labels: ["status", "final_outcome"],
    known: [
      ["succeeded", "delivered"],
      ...["rejected", "exhausted", "same_error", "gone", "held_too_long", "abandoned"].map((end) => [
        "dead_letter",
        end,
      ]),
      ["expired", "expired"],
    ],
  },
  {
    name: PUBLISHES,
    help: "Events that an authorized caller asked to publish, by what became of them.",
    labels: ["result"],
    known: [["accepted"], ["duplicate"], ["refused"], ["unavailable"]],
  },
  {
    name: LAG,
    help: "The relay's own delay: from when only a free worker was missing (scheduled_at) to the first request.",
    bounds: LAG_BOUNDS,
  },
  {
    name: ACK,
    help: "From when a publish request had been read and authorized to its answer.",
    bounds: ACK_BOUNDS,
  },
];

/** Series of families that this version does not know are another version's, and are left to it. */
export function countedFamilies(counts: Counts): Family[] {
  return COUNTED.map((counted) =>
    counted.bounds ? histogram(counted, counted.bounds, counts) : counter(counted, counts),
  );
}

function counter({ name, help, labels = [], known = [] }: Counted, counts: Counts): Family {
  const values = new Map<string, number>(known.map((given) => [seriesOf(name, ...given), 0]));
  for (const [series, count] of Object.entries(counts)) {
    const given = series.split(" ").slice(1);
    if (series.startsWith(`${name} `) && given.length === labels.length) values.set(series, count);
  }
  const samples = [...values].toSorted().map(([series, value]): Sample => {
    const given = series.split(" ").slice(1);
    return { labels: Object.fromEntries(labels.map((label, i) => [label, given[i]!])), value };
  });
  return { name, help, type: "counter", samples };
}

/** A bucket of a version that had other bounds counts in every one of ours that holds all of it. */
function histogram({ name, help }: Counted, bounds: readonly number[], counts: Counts): Family {
  const prefix = `${seriesOf(name, "le")} `;
  const kept = Object.entries(counts).flatMap(([series, count]) =>
    series.startsWith(prefix) ? [{ upTo: toBound(series.slice(prefix.length)), count }] : [],
  );
  const within = (bound: number) => kept.reduce((sum, { upTo, count }) => (upTo <= bound ? sum + count : sum), 0);
  return {
    name,
    help,
    type: "histogram",
    samples: [
      ...[...bounds, Infinity].map((bound) => ({
        suffix: "_bucket",
        labels: { le: bound === Infinity ? "+Inf" : String(bound) },
        value: within(bound),
      })),
      { suffix: "_sum", value: (counts[seriesOf(name, "sum_ms")] ?? 0) / 1_000 },
      { suffix: "_count", value: within(Infinity) },
    ],
  };
}

const toBound = (text: string) => (text === "+Inf" ? Infinity : Number(text));
