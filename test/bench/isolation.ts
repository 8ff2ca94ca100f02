import { eventBody, startDriver, type Load } from "./support/driver.ts";
import { nowMs } from "./support/child.ts";
import { startReceiver, type Received } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { BenchContext, Row, Section } from "./support/section.ts";
import { round, summarise } from "./support/table.ts";

const HEALTHY_PER_SECOND = 20;
const HEALTHY_ENDPOINTS = 3;
const HOLE_PER_SECOND = 50;
const HOLE_TIMEOUT_MS = 15_000;
const QUIET_MS = 30_000;
const ROUNDS = 2;

/** `nobody`: the hole's events are published, and no endpoint gets them. */
type Neighbour = "none" | "nobody" | "answering" | "hole";

/** What came of one run. */
interface Run {
  own: number[];
  other: number[];
  cpuSeconds: number;
  heldAtMost: number | null;
  quarantinedAfterSeconds: number | null;
}

/**
 * What a black hole costs its neighbours. Healthy endpoints of the hole's tenant and of another get 20 events a second in all, the
 * hole 50. The same is run without the hole, with its events for nobody, and with one that answers, by turns, since a p95 of some
 * hundred lags differs from run to run by more than what is looked for. Lag is the arrival of a request less the `relayed_at` of its event.
 */
export const isolation: Section = async (context) => {
  const neighbours: Neighbour[] = context.quick ? ["none", "hole"] : ["none", "nobody", "answering", "hole"];
  const runs = new Map<Neighbour, Run[]>(neighbours.map((neighbour) => [neighbour, []]));
  for (let round = 0; round < (context.quick ? 1 : ROUNDS); round++) {
    for (const neighbour of neighbours) runs.get(neighbour)!.push(await run(context, neighbour));
  }
  const rows = [...runs].map(([neighbour, ofNeighbour]) => toRow(neighbour, ofNeighbour));
  const hole = rows.at(-1)!;
  for (const row of rows.slice(0, -1)) {
    const ratio = round((hole["p95 ms"] as number) / (row["p95 ms"] as number), 2);
    context.note(`p95 beside the hole / beside ${row["neighbour"]}: ${ratio}`);
  }
  return rows;
};

function toRow(neighbour: Neighbour, runs: Run[]): Row {
  const all = summarise(runs.flatMap(({ own, other }) => [...own, ...other]));
  const most = (values: (number | null)[]) => (values.includes(null) ? null : Math.max(...(values as number[])));
  return {
    neighbour,
    events: all.count,
    "p50 ms": round(all.p50),
    "p95 ms": round(all.p95),
    "p95 of each run, ms": runs.map(({ own, other }) => round(summarise([...own, ...other]).p95)).join(" "),
    "latest ms": round(all.max),
    "own tenant p95 ms": round(summarise(runs.flatMap(({ own }) => own)).p95),
    "other tenant p95 ms": round(summarise(runs.flatMap(({ other }) => other)).p95),
    "cpu s a run": round(runs.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) / runs.length),
    "held at most": most(runs.map(({ heldAtMost }) => heldAtMost)),
    "quarantined after s": most(runs.map(({ quarantinedAfterSeconds }) => quarantinedAfterSeconds)),
  };
}

async function run(context: BenchContext, neighbour: Neighbour): Promise<Run> {
  const [warmUpSeconds, seconds] = context.quick ? [2, 6] : [4, 20];
  const [relay, receiver, driver] = [await startRelay(), await startReceiver(), startDriver()];
  try {
    const tenants = [await createTenant(relay, "own"), await createTenant(relay, "other")];
    const loadOf = (key: string, types: string[], perSecond: number): Load => ({
      key,
      url: `${relay.url}/v1/events`,
      bodies: types.map((type) => eventBody(type, 10)),
      pace: { perSecond },
      until: { seconds: warmUpSeconds + seconds },
    });
    const loads: Load[] = [];
    for (const [t, { call, key }] of tenants.entries()) {
      const url = `${receiver.url}/${t === 0 ? "own" : "other"}`;
      const types = Array.from({ length: HEALTHY_ENDPOINTS }, (_, n) => `healthy.n${n}`);
      for (const type of types) await subscribe({ call }, { url, type, timeout_ms: HOLE_TIMEOUT_MS });
      loads.push(loadOf(key, types, HEALTHY_PER_SECOND / tenants.length));
    }
    const { call, key } = tenants[0]!;
    let holeId: string | null = null;
    if (neighbour === "hole" || neighbour === "answering") {
      await receiver.behave("/hole", { hangs: neighbour === "hole" });
      holeId = await subscribe({ call }, { url: `${receiver.url}/hole`, type: "hole", timeout_ms: HOLE_TIMEOUT_MS });
    }
    if (neighbour !== "none") loads.push(loadOf(key, ["hole"], HOLE_PER_SECOND));

    const from = nowMs() + warmUpSeconds * 1_000;
    const results = await Promise.all(loads.map((load) => driver.run(load)));
    const accepted = (n: number) => results[n]!.eventIds.length;
    await Promise.all(["/own", "/other"].map((path, n) => receiver.waitFor(path, accepted(n), QUIET_MS)));
    const taken = await receiver.take();
    const healthy = ["/own", "/other"].map((path, n) => {
      context.countErrors("event never arrived", accepted(n) - new Set(taken[path]?.eventIds).size);
      return lagsFrom(taken[path], from);
    });
    const { cpuSeconds } = relay.usage();
    const quarantinedAt = holeId && ((await call("GET", `/v1/endpoints/${holeId}`)).quarantined_at as string | null);
    return {
      own: healthy[0]!,
      other: healthy[1]!,
      cpuSeconds,
      heldAtMost: neighbour === "hole" ? await receiver.mostOpen("/hole") : null,
      quarantinedAfterSeconds: quarantinedAt
        ? round((Date.parse(quarantinedAt) - results[0]!.startedAt) / 1_000)
        : null,
    };
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
}

function lagsFrom(received: Received | undefined, from: number): number[] {
  return Array.from(received?.sinceRelayedMs ?? []).filter((_, n) => received!.at[n]! >= from);
}
