import { eventually } from "../eventually.ts";
import { runtimeOf } from "../process-group.ts";
import { createStateDir, freePortToKeep, startRelayProcess, type RelayProcess } from "../relay-process.ts";
import { sleep } from "../sleep.ts";
import type { PlannedKill } from "./plan.ts";
import type { Publishing } from "./publishing.ts";
import type { Watching } from "./receiving.ts";
import type { Visit } from "./verdict.ts";

/** How long a kill waits for what it is to strike at. */
const PATIENCE_MS = 2_000;

export interface Kill extends PlannedKill {
  /** Milliseconds since 1970. */
  at: number;
  afterSpawnMs: number;
  /** Null where the relay was not ready yet. */
  afterReadyMs: number | null;
  /** What it waited for came. */
  struck: boolean;
}

/** One relay after the other on the same folder and the same port, each killed but the last. */
export async function createLives() {
  const stateDir = createStateDir();
  const port = await freePortToKeep();
  const kills: Kill[] = [];
  let current: { kill: RelayProcess["kill"]; spawnedAt: number; readyAt: number | null; isDead: boolean } | null = null;
  let relay: RelayProcess | null = null;
  let startTookMs = 3_000;

  const start = async (): Promise<RelayProcess> => {
    const spawnedAt = Date.now();
    const spawned = (kill: RelayProcess["kill"]) => (current = { kill, spawnedAt, readyAt: null, isDead: false });
    relay = await startRelayProcess({ stateDir, port, spawned });
    current!.readyAt = Date.now();
    startTookMs = current!.readyAt - spawnedAt;
    return relay;
  };
  const note = (planned: PlannedKill, struck: boolean) => {
    const { spawnedAt, readyAt } = current!;
    const at = Date.now();
    const afterReadyMs = readyAt === null ? null : at - readyAt;
    kills.push({ ...planned, at, afterSpawnMs: at - spawnedAt, afterReadyMs, struck });
  };
  /** The signal is sent before this returns. */
  const kill = (planned: PlannedKill, struck: boolean): Promise<void> => {
    const ended = current!.kill();
    current!.isDead = true;
    note(planned, struck);
    return ended;
  };
  const killRuntime = async (planned: PlannedKill): Promise<void> => {
    process.kill(runtimeOf(relay!.group), "SIGKILL");
    note(planned, true);
    await eventually(() =>
      fetch(`${relay!.url}/health`, { signal: AbortSignal.timeout(10_000) }).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  };
  return {
    url: `http://localhost:${port}`,
    stateDir,
    kills,
    relay: () => relay!,
    /** Starts one unless the last still runs. */
    async run(): Promise<void> {
      if (current === null || current.isDead) await start();
    },
    /** Starts the next, and kills it in the middle of that. */
    async killStarting(planned: PlannedKill): Promise<void> {
      if (current !== null && !current.isDead) await kill(planned, true);
      const killed = sleep(planned.share * startTookMs).then(() => kill(planned, current!.readyAt === null));
      await start().catch((error: unknown) => {
        if (!current!.isDead) throw error;
      });
      await killed;
    },
    /** Kills the one that runs, at the moment that is planned. */
    async killRunning(planned: PlannedKill, publishing: Publishing, watch: Watching): Promise<void> {
      await sleep(planned.afterMs);
      if (planned.kind === "any" || planned.kind === "recovering") return kill(planned, true);
      if (planned.kind === "runtime") return killRuntime(planned);
      const isMeant = ({ endpoint }: Visit) => endpoint.startsWith(planned.endpoint);
      await new Promise<void>((resolve) => {
        const strike = (struck: boolean) => {
          clearTimeout(timer);
          publishing.acknowledged = watch.requested = watch.answered = undefined;
          void kill(planned, struck).then(resolve);
        };
        const timer = setTimeout(() => strike(false), PATIENCE_MS);
        if (planned.kind === "acknowledged") publishing.acknowledged = () => strike(true);
        if (planned.kind === "answered") watch.answered = (visit) => isMeant(visit) && strike(true);
        if (planned.kind === "held") {
          watch.requested = (visit) => {
            if (!isMeant(visit)) return "answer";
            strike(true);
            return "hold";
          };
        }
      });
    },
  };
}
