import { expect, test } from "vitest";
import { readMetrics } from "../../../src/app/metrics/read-metrics.ts";
import { observed } from "../../../src/core/counts.ts";
import { ACK, ACK_BOUNDS, LAG, LAG_BOUNDS } from "../../../src/core/metric-families.ts";
import { readDoc, tableRows } from "../../e2e/support/docs/markdown.ts";

const whole = { count: 1, isComplete: true };

/** Everything that a relay can tell, with a value for each. */
const families = await readMetrics({
  shards: ["0"],
  now: () => 1_000,
  readCounts: async () => ({
    totals: { ...observed(LAG, LAG_BOUNDS, 1), ...observed(ACK, ACK_BOUNDS, 1) },
    tickedAt: 1,
  }),
  readGauges: async () => ({
    openDeadLetters: whole,
    openLanes: whole,
    laneHeads: whole,
    oldestHeadAt: 1,
    oldestDueAt: 1,
  }),
  logFault: () => {},
});

test("docs/operations.md names every family with its type, and no other", () => {
  const table = readDoc("docs/operations.md").text.split("| Family | | |\n|---|---|---|\n")[1]!.split("\n\n")[0]!;
  const told = tableRows(`|\n|\n${table}`).map(([name, type]) => [name!.replaceAll("`", ""), type]);
  const known = families.filter(({ name }) => !name.endsWith("_at_least")).map(({ name, type }) => [name, type]);
  expect(told.toSorted()).toEqual(known.toSorted());
});

test("the alerts of docs/incident.md are about samples and labels that there are, and the page says of each what then", () => {
  const { text, blocks } = readDoc("docs/incident.md");
  const rules = blocks.find(({ language }) => language === "yaml")!.text;
  const samples = new Set(families.flatMap(({ name, samples: of }) => of.map(({ suffix = "" }) => name + suffix)));
  const named = [...rules.matchAll(/\bhooklane_\w+/g)].map(([name]) => name);
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((name) => !samples.has(name))).toEqual([]);
  const labels = new Set(families.flatMap(({ samples: of }) => of.flatMap(({ labels = {} }) => Object.keys(labels))));
  const asked = [...rules.matchAll(/\{(\w+)(?:=~|!=|=)"/g)].map(([, label]) => label!);
  expect(asked.filter((label) => label !== "job" && !labels.has(label))).toEqual([]);
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, alert]) => alert!);
  const explained = text.split("## Which alert, what then")[1]!.split("\n## ")[0]!;
  expect(alerts.length).toBeGreaterThan(5);
  expect(alerts.filter((alert) => !explained.includes(`\`${alert}\``))).toEqual([]);
});

test("what is not known has no sample: a count that is not complete, a time of nothing, a shard that does not answer", async () => {
  const read = (over: object, shards = ["0", "1"]) =>
    readMetrics({
      shards,
      now: () => 1_000,
      readCounts: async () => ({ totals: {}, tickedAt: null }),
      readGauges: async (shard) => ({
        openDeadLetters: { count: 3, isComplete: shard === "0" },
        openLanes: whole,
        laneHeads: { count: 2, isComplete: shard === "0" },
        oldestHeadAt: shard === "0" ? 5_000 : null,
        oldestDueAt: shard === "0" ? null : 7_000,
      }),
      logFault: () => {},
      ...over,
    });
  const valueOf = (of: typeof families, wanted: string) =>
    of.find(({ name }) => name === wanted)?.samples.map(({ value }) => value) ?? [];
  const known = await read({});
  expect(valueOf(known, "hooklane_dead_letters_open")).toEqual([]);
  expect(valueOf(known, "hooklane_dead_letters_open_at_least")).toEqual([6]);
  expect(valueOf(known, "hooklane_lanes_open")).toEqual([2]);
  expect(valueOf(known, "hooklane_oldest_lane_head_timestamp_seconds")).toEqual([]);
  expect(valueOf(known, "hooklane_oldest_due_timestamp_seconds")).toEqual([7]);
  expect(valueOf(known, "hooklane_watchdog_last_tick_timestamp_seconds")).toEqual([]);
  const half = await read({
    readCounts: async (shard: string) => {
      if (shard === "1") throw new Error("away");
      return { totals: { "hooklane_publishes_total accepted": 9 }, tickedAt: 1 };
    },
  });
  expect(valueOf(half, "hooklane_publishes_total")).toEqual([]);
  expect(valueOf(half, "hooklane_lanes_open")).toEqual([2]);
  expect(valueOf(half, "hooklane_shard_up")).toEqual([1, 0]);
});
