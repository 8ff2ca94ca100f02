import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Keeps a state folder to one relay: two would run queues and objects of their own over the same databases. Throws while
 * another process has it; one that was killed has it no more. Gives back what lets it go.
 */
export function lockState(stateDir: string): () => void {
  const file = join(stateDir, "relay.pid");
  try {
    mkdirSync(stateDir, { recursive: true });
  } catch (error) {
    throw new Error(`HOOKLANE_STATE: ${(error as Error).message}`, { cause: error });
  }
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const pid = Number(readFileSync(file, "utf8"));
    if (isRunning(pid)) {
      throw new Error(
        `Process ${pid} has the state folder ${stateDir}: a relay that is still running. A second one needs a folder of its ` +
          `own, HOOKLANE_STATE=…. If that process is no relay, delete ${file}.`,
      );
    }
    rmSync(file, { force: true });
  }
}

function isRunning(pid: number): boolean {
  // A number of this process's own was left by one before, as it happens in containers.
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
