import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning, listRunning } from "./processes.ts";

/** In the environment of whatever a relay starts: whose state it works on. */
const MARK = "HOOKLANE_STATE_OF";
/** A relay that was told to stop may still be at it. */
const PATIENCE_MS = 3_000;
const POLL_MS = 50;

/**
 * Keeps a state folder to one relay: two would run queues and objects of their own over the same databases. Throws while
 * another process has it; one that was killed has it no more, and what it has left running is ended. Gives back what lets it
 * go.
 */
export async function lockState(stateDir: string, patienceMs = PATIENCE_MS): Promise<() => void> {
  const file = join(stateDir, "relay.pid");
  const mark = createHash("sha256").update(stateDir).digest("hex").slice(0, 16);
  try {
    mkdirSync(stateDir, { recursive: true });
  } catch (error) {
    throw new Error(`HOOKLANE_STATE: ${(error as Error).message}`, { cause: error });
  }
  const giveUpAt = Date.now() + patienceMs;
  let holder: number | null = null;
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    holder = readHolder(file);
    if (holder === null) continue;
    // A number of this process's own was left by one before, as it happens in containers.
    if (holder === process.pid || !isRunning(holder)) {
      rmSync(file, { force: true });
    } else if (Date.now() > giveUpAt) {
      throw new Error(
        `Process ${holder} has the state folder ${stateDir}: a relay that is still running. A second one needs a folder of its ` +
          `own, HOOKLANE_STATE=…. If that process is no relay, delete ${file}.`,
      );
    } else {
      await sleep(POLL_MS);
    }
  }
  if (holder !== null) await endLeftovers(mark);
  process.env[MARK] = mark;
  return () => rmSync(file, { force: true });
}

/** Null where it has let go meanwhile. */
function readHolder(file: string): number | null {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return null;
  }
}

/** A relay that alone was killed leaves its runtime behind, which goes on serving the port and working on the folder. */
async function endLeftovers(mark: string): Promise<void> {
  const leftovers = listRunning("workerd", MARK, mark);
  for (const pid of leftovers) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
  while (leftovers.some(isRunning)) await sleep(POLL_MS);
}
