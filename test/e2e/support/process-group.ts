import { execFileSync } from "node:child_process";
import { eventually } from "./eventually.ts";

/** The command lines of what still runs in a process group. What has ended and waits to be collected does not. */
export function runningInGroup(group: number): string[] {
  const lines = execFileSync("ps", ["-A", "-o", "pgid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pgid, state, command] = /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return Number(pgid) === group && !state!.startsWith("Z") ? [command!] : [];
  });
}

/** What was killed lets go of its files only once it is gone. */
export async function groupEnded(group: number): Promise<void> {
  await eventually(async () => runningInGroup(group).length === 0);
}
