import { readdirSync, readFileSync } from "node:fs";

/** What processes have used since they started. NaN where /proc does not say. */
export interface Usage {
  cpuSeconds: number;
  /** The most that was resident at once, in MiB. */
  peakMib: number;
}

const TICKS_PER_SECOND = 100;

/** Of the processes of a group whose program has this name. A busy machine does not change it. */
export function usageOf(group: number, program: string): Usage {
  let cpuSeconds = 0;
  let peakMib = 0;
  let seen = false;
  for (const pid of listProcesses()) {
    try {
      // The name stands in brackets and may hold anything.
      const [head, tail] = splitAtLast(readFileSync(`/proc/${pid}/stat`, "utf8"), ") ");
      const fields = tail.split(" ");
      if (Number(fields[2]) !== group) continue;
      if (head.slice(head.indexOf("(") + 1) !== program) continue;
      seen = true;
      cpuSeconds += (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
      const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
      peakMib += Number(peak ?? NaN) / 1_024;
    } catch {
      // It has ended meanwhile.
    }
  }
  return seen ? { cpuSeconds, peakMib } : { cpuSeconds: NaN, peakMib: NaN };
}

function listProcesses(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

function splitAtLast(text: string, mark: string): [string, string] {
  const at = text.lastIndexOf(mark);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
