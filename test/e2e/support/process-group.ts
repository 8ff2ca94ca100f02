import { execFileSync } from "node:child_process";
import { eventually } from "./eventually.ts";

/** What still runs in a process group. What has ended and waits to be collected does not. */
function listGroup(group: number): { pid: number; command: string }[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,pgid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, pgid, state, command] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return Number(pgid) === group && !state!.startsWith("Z") ? [{ pid: Number(pid), command: command! }] : [];
  });
}

/** The command lines of what still runs in a process group. */
export const runningInGroup = (group: number): string[] => listGroup(group).map(({ command }) => command);

/** The process of a relay that runs its Worker. */
export function runtimeOf(group: number): number {
  return listGroup(group).find(({ command }) => command.includes("workerd serve"))!.pid;
}

/** What was killed lets go of its files only once it is gone. */
export async function groupEnded(group: number): Promise<void> {
  await eventually(async () => runningInGroup(group).length === 0);
}
