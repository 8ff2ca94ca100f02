import { applyD1Migrations, type D1Migration } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll, beforeAll, vi } from "vitest";
import { faultsOf, type Call, type Fault, type Strike } from "./calls.ts";
import { brokenPromises, type Expected } from "./promises.ts";
import { createEndpoint, createHome, createScene, type Home, type Scene } from "./scene.ts";
import { createWorld, ledger, type World, type WorldOptions } from "./world.ts";

export interface Scenario extends Expected {
  name: string;
  /** Of the endpoint. */
  endpoint?: object;
  /** Each run has an endpoint of its own: the act leaves it another. */
  isFresh?: boolean;
  settings?: WorldOptions["settings"];
  /** Before any fault. */
  arrange?(scene: Scene): Promise<unknown>;
  /** What is swept, with all that follows from it. */
  act(scene: Scene): Promise<unknown>;
  /** To ask for it again is to ask for one more: another replay, another test. */
  isOneMore?: boolean;
  /** Calls that are swept, without it all; with HOOKLANE_CHAOS=1 all in any case. */
  only?: RegExp;
  /** Faults that are tried instead of the usual ones. */
  faults?: Fault[];
  /** Faults after which an answer that the relay got may be nobody's any more, as after the death of a process. */
  mayForget?: RegExp;
  /** When the run is over, besides that nothing is open and no message waits. */
  isDone?(scene: Scene): Promise<boolean> | boolean;
  /** What else is to be so at the end. */
  check?(scene: Scene): Promise<string[]> | string[];
}

const QUIET_LIMIT_MS = 3 * 3_600_000;
/** Longer than what an isolate remembers without asking: no run finds what the one before it did. */
const BETWEEN_RUNS_MS = 20_000;
const { TEST_MIGRATIONS, HOOKLANE_CHAOS } = env as unknown as {
  TEST_MIGRATIONS: D1Migration[];
  HOOKLANE_CHAOS: string;
};
export const isChaos = HOOKLANE_CHAOS === "1";

export const TIMEOUT_MS = isChaos ? 3_600_000 : 120_000;

let current: World | null = null;
let made = 0;

/** Fakes the clock, and hears what the Worker logs. For the top of a file. */
export function fakeTime(): void {
  beforeAll(async () => {
    await applyD1Migrations(ledger, TEST_MIGRATIONS);
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: Math.max(Date.now(), later) });
    for (const method of ["log", "error"] as const) {
      vi.spyOn(console, method).mockImplementation(
        (line: unknown) => void current?.log.push(`console: ${String(line)}`),
      );
    }
  });
  afterAll(() => {
    later = Date.now() + 3_600_000;
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
}
/** Where the clock of one file has come to, the next goes on. */
let later = 0;

/** One run; gives back what it broke, and the calls that were made. */
async function runOnce(scenario: Scenario, home: Home | null, strikes: Strike[]) {
  vi.setSystemTime(Date.now() + BETWEEN_RUNS_MS);
  const world = createWorld({ strikes, settings: scenario.settings });
  current = world;
  const broken: string[] = [];
  let attempts = 0;
  const { state } = world.calls;
  const ownHome = home ?? (await createHome(world));
  const settings = scenario.endpoint ?? {};
  const type = `run.${++made}`;
  if (!scenario.isFresh) ownHome.endpoint ??= await createEndpoint(world, ownHome, "run.*", settings);
  const endpoint = ownHome.endpoint ?? (await createEndpoint(world, ownHome, type, settings));
  try {
    const scene = createScene(world, ownHome, type, endpoint);
    if (scenario.arrange) await world.finish(scenario.arrange(scene));
    world.startCron();
    state.isCounting = true;
    const acting = scenario.act(scene);
    let isDone = false;
    acting.then(
      () => (isDone = true),
      () => (isDone = true),
    );
    const isQuiet = async () =>
      isDone &&
      world.waiting.messages === 0 &&
      (await scene.openCount()) === 0 &&
      ((await scenario.isDone?.(scene)) ?? true);
    if (!(await world.goOn(isQuiet, QUIET_LIMIT_MS))) broken.push(isDone ? "work is left" : "the act does not end");
    else await acting;
    state.isCounting = false;
    const mayForget = state.struck.some((text) => text.includes("dies") || scenario.mayForget?.test(text));
    const isDeath = scenario.isDeath || mayForget;
    const expected = { ...scenario, isDeath };
    broken.push(...(await brokenPromises(scene, expected)));
    broken.push(...((await scenario.check?.(scene)) ?? []));
    ({ length: attempts } = (await scene.rows()).attempts);
    if (world.calls.hasLate()) {
      const before = (await scene.rows()).deliveries;
      world.calls.release();
      let n = 0;
      await world.goOn(async () => ++n > 20 && (await isQuiet()), QUIET_LIMIT_MS);
      const after = (await scene.rows()).deliveries;
      if (JSON.stringify(endsOf(before)) !== JSON.stringify(endsOf(after.filter(isIn(before))))) {
        broken.push("what came late changed what had ended");
      }
      broken.push(...(await brokenPromises(scene, expected)).map((text) => `once all came: ${text}`));
    }
  } catch (error) {
    broken.push(`the test: ${String(error)}`);
  } finally {
    await world.end();
  }
  return { broken: [...new Set(broken)], attempts, calls: world.calls.calls, home: ownHome, world };
}

const keyOf = (row: Record<string, any>) => `${row["event_id"]}/${row["replay_no"]}`;
const isIn = (rows: Record<string, any>[]) => (row: Record<string, any>) =>
  rows.some((one) => keyOf(one) === keyOf(row));
const endsOf = (rows: Record<string, any>[]) =>
  rows.map((row) => [keyOf(row), row["status"], row["attempt_count"], row["terminal_at"], row["final_outcome"]]);

/**
 * Runs a scenario without a fault, and then once for each call that it made and each fault that may strike it. Gives back what
 * was broken: scenario, call, fault, promise.
 */
export async function sweep(scenario: Scenario): Promise<string[]> {
  const plain = await runOnce(scenario, null, []);
  const title = (what: string) => `${scenario.name} › ${what}`;
  if (plain.broken.length > 0) {
    return [...plain.broken.map((text) => title(`no fault: ${text}`)), ...plain.world.log, ...plain.calls.map(show)];
  }
  const again = await runOnce(scenario, plain.home, []);
  const broken: string[] = again.broken.map((text) => title(`no fault, again: ${text}`));
  const swept = again.calls.filter(({ name }) => isChaos || (scenario.only?.test(name) ?? true));
  const cases = swept.flatMap((call) => (scenario.faults ?? faultsOf(call)).map((fault) => [{ at: call.n, fault }]));
  // A call that is named otherwise by now must not go unswept.
  if (swept.length === 0) broken.push(title("no call is swept"));
  for (const strikes of isChaos ? [...cases, ...pairsOf(cases)] : cases) {
    const run = await runOnce(scenario, plain.home, strikes);
    const { struck } = run.world.calls.state;
    if (!scenario.isOneMore && costsNothing(strikes, run) && run.attempts > again.attempts) {
      run.broken.push(`it cost an attempt: ${run.attempts} instead of ${again.attempts}`);
    }
    for (const text of run.broken) broken.push(title(`call ${struck.join(", and call ")}: ${text}`));
    if (run.broken.length > 0 && broken.length > 200) break;
  }
  return broken;
}

type Run = Awaited<ReturnType<typeof runOnce>>;

/** A store that fails once is asked once more: that is no reason for another attempt. */
function costsNothing(strikes: Strike[], { calls }: Run): boolean {
  const [strike] = strikes;
  const struck = calls.find(({ n }) => n === strike?.at);
  if (strikes.length !== 1 || struck?.name.endsWith("Sender send")) return false;
  return strike!.fault === "throws before" || strike!.fault === "takes effect, then throws";
}

const show = ({ n, name }: Call) => `${n} ${name}`;

/** Each single fault with another one behind it, the same ones at every run. */
function pairsOf(cases: Strike[][]): Strike[][] {
  const kinds: Fault[] = ["throws before", "takes effect, then throws", "hangs, and takes effect late"];
  return cases.flatMap(([strike], i) =>
    kinds.map((fault, n) => [strike!, { at: strike!.at + 1 + ((i * 7 + n * 3) % 9), fault }]),
  );
}
