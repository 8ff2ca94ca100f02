import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

const isLinux = process.platform === "linux";

/** Whether a process runs. One that has ended, and that nobody has collected, has its number still and does nothing more. */
export function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  try {
    // Behind the name of its program, which is in brackets and may hold anything.
    const state = isLinux ? read(pid, "stat").split(") ").at(-1)! : ps("-p", String(pid), "-o", "stat=").trim();
    return !/^[ZX]/.test(state);
  } catch {
    // Nothing says that it has ended.
    return true;
  }
}

/** Processes of a program that were started with this in their environment, as far as that may be read. */
export function listRunning(program: string, name: string, value: string): number[] {
  const setting = `${name}=${value}`;
  try {
    const pids = isLinux ? listOnLinux(program, setting) : listByPs(program, setting);
    return pids.filter(isRunning);
  } catch {
    return [];
  }
}

function listOnLinux(program: string, setting: string): number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return pids.filter((pid) => {
    try {
      return read(pid, "cmdline").includes(program) && read(pid, "environ").split("\0").includes(setting);
    } catch {
      // Somebody else's, or it has ended.
      return false;
    }
  });
}

const read = (pid: number, what: "stat" | "cmdline" | "environ") => readFileSync(`/proc/${pid}/${what}`, "utf8");

function listByPs(program: string, setting: string): number[] {
  const lines = ps("axeww", "-o", "pid=,command=").split("\n");
  const found = lines.filter((line) => line.includes(program) && line.split(" ").includes(setting));
  return found.map((line) => Number.parseInt(line, 10));
}

function ps(...args: string[]): string {
  return execFileSync("ps", args, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
}
