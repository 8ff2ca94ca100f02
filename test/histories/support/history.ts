import { createHash } from "node:crypto";
import { updateTenant } from "../../../src/app/tenant/update-tenant.ts";
import { enableEndpoint, resumeEndpoint } from "../../../src/app/endpoint/switch-endpoint.ts";
import { act, BEHAVIOURS, limits, skip } from "./acts.ts";
import { insideOf } from "./globals.ts";
import { lookAtEnd, lookAtRows } from "./invariants.ts";
import { createChance } from "./random.ts";
import { createRelay, done, furnish, type Relay } from "./relay.ts";
import { Sqlite } from "./sqlite.ts";
import { writeSteps, type Step } from "./steps.ts";
import type { Ledger } from "./stores.ts";
import { CALM, WEATHERS } from "./weather.ts";

export const STEPS = 50;

export interface Run {
  seed: number;
  steps: Step[];
  /** Empty when all was kept. */
  violations: string[];
  /** After which step the first was seen. */
  failedAt: number | null;
  /** Of all that is in the ledger and all that was received. */
  digest: string;
  counts: { steps: number; requests: number; attempts: number; events: number; deliveries: number; ops: number };
  trace: string[];
}

const sqlite = new Sqlite();

/**
 * Runs one history: its steps, then everything goes on, until all that was acknowledged has come to its end. The same seed and
 * steps make the same history.
 */
export async function runHistory(
  seed: number,
  {
    steps = writeSteps(seed, STEPS),
    isTraced = false,
    ledgerOf = (db: Sqlite): Ledger => db,
  }: { steps?: Step[]; isTraced?: boolean; ledgerOf?: (db: Sqlite) => Ledger } = {},
): Promise<Run> {
  sqlite.clear();
  const relay = createRelay(seed, sqlite, ledgerOf(sqlite));
  relay.world.isTraced = isTraced;
  const failedAt = await insideOf(relay.world, () => live(relay, seed, steps));
  const { world, model, db } = relay;
  const count = (table: string) => db.rows(`select count(*) as n from ${table}`)[0]!["n"] as number;
  return {
    seed,
    steps,
    violations: model.violations,
    failedAt,
    digest: digestOf(relay),
    counts: {
      steps: steps.length,
      requests: world.requests,
      attempts: count("attempt"),
      events: count("event"),
      deliveries: count("delivery"),
      ops: world.ops,
    },
    trace: world.trace,
  };
}

async function live(relay: Relay, seed: number, steps: Step[]): Promise<number | null> {
  const { world, model } = relay;
  const chance = createChance(seed, 1);
  await furnish(relay, endpointsOf(chance));
  for (const endpoint of model.endpoints) endpoint.behaviour = chance.weighted(BEHAVIOURS);
  relay.startCron();
  const weather = chance.pick(WEATHERS)();
  try {
    for (const step of steps) {
      world.weather = weather;
      // What a step does, and what becomes of everything until the next, is its own.
      world.chance = createChance(seed, step.n, 2);
      world.luck = createChance(seed, step.n, 3);
      world.log(`${step.n}. ${step.act}`);
      await act(relay, step.act, createChance(seed, step.n, 4));
      await world.turn();
      await world.run(step.budget);
      lookAtRows(relay);
      if (model.violations.length > 0) return step.n;
    }
    await goOn(relay, seed);
    lookAtEnd(relay, weather);
  } catch (error) {
    model.violate(`the world broke: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
  return model.violations.length > 0 ? (steps.at(-1)?.n ?? null) : null;
}

const LONG_ENOUGH_MS = 90 * 60_000;

/** Everybody is well, nothing is held or blocked, and time passes: what is owed is delivered. */
async function goOn(relay: Relay, seed: number): Promise<void> {
  const { world, model, db, principal } = relay;
  world.log("everything goes on");
  const chance = createChance(seed, 5);
  Object.assign(world, { weather: CALM, chance: createChance(seed, 6), luck: createChance(seed, 7) });
  Object.assign(world.away, { d1: 0, r2: 0, queue: 0 });
  for (const endpoint of model.endpoints) endpoint.behaviour = "ok";
  // What was under way is not to come after what is done now.
  await world.advance(35_000);
  relay.operate((deps) => updateTenant(deps, principal.tenantId, { status: "active" }));
  await world.turn();
  await world.run(Infinity);
  for (const { id } of model.endpoints) {
    await done(relay, (deps) => resumeEndpoint(deps, principal, id));
    await done(relay, (deps) => enableEndpoint(deps, principal, id));
  }
  const open = () => db.rows("select count(*) as n from delivery where terminal_at is null")[0]!["n"] as number;
  const endsAt = world.now + LONG_ENOUGH_MS;
  while (open() > 0 && world.now < endsAt) {
    // A dead head that is sent again may die again only where it is refused.
    while (db.rows("select 1 from lane_block").length > 0) {
      skip(relay, chance);
      await world.turn();
      await world.run(Infinity);
    }
    // A 410 may have been heard of after its endpoint was enabled: one that answers so is disabled, and holds what it is owed.
    for (const { id } of db.rows("select id from endpoint where disabled_at is not null"))
      await done(relay, (deps) => enableEndpoint(deps, principal, id as string));
    const next = world.nextAt();
    await world.advance(next === null ? 1_000 : Math.max(1, next - world.now));
  }
  // What was still on its way to the ledger arrives.
  await world.advance(60_000);
  lookAtRows(relay);
}

function endpointsOf(chance: ReturnType<typeof createChance>): Record<string, unknown>[] {
  const count = chance.weighted([
    [5, 1],
    [4, 2],
    [1, 3],
  ]);
  return Array.from({ length: count }, (_, n) => ({
    url: `https://r${n}.example/hook`,
    payload_format: chance.pick(["raw", "envelope", "cloudevents"]),
    source_signatures: chance.next() < 0.3,
    ordering_mode: chance.weighted([
      [3, "unordered"],
      [4, "strict"],
      [4, "keyed"],
    ]),
    on_exhausted: chance.pick(["advance", "block"]),
    timeout_ms: chance.pick([1_000, 2_000, 3_000]),
    ...(chance.next() < 0.4 && limits(chance)),
    retry_policy: {
      delays_seconds: chance.pick([[1, 2], [0.5], [2, 70]]),
      jitter: chance.pick([0, 0.2]),
      max_attempts: chance.int(1, 4),
      max_age_seconds: chance.pick([86_400, 86_400, 86_400, 120]),
      same_error_limit: chance.pick([2, 6]),
      same_error_classes: chance.pick([["http_4xx"], ["http_4xx", "http_5xx"]]),
    },
  }));
}

function digestOf({ db, model }: Relay): string {
  const hash = createHash("sha256");
  for (const table of ["event", "delivery", "attempt", "lane_block", "endpoint"]) {
    hash.update(JSON.stringify(db.rows(`select * from ${table}`)));
  }
  hash.update(JSON.stringify(model.received.map(({ from, ...received }) => ({ ...received, from: from.name }))));
  return hash.digest("hex");
}
