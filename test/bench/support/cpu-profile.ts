/** A V8 CPU profile, as `Profiler.stop` gives it. Times are microseconds. */
export interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number; columnNumber: number };
    children?: number[];
  }[];
  samples: number[];
  timeDeltas: number[];
}

export interface FunctionTimes {
  name: string;
  url: string;
  /** From 0. */
  line: number;
  selfMs: number;
  /** With all it called. A function within itself counts once. */
  totalMs: number;
}

/**
 * Nothing is sampled while the thread is with another isolate, or with none: what comes next would be given all that time. So a sample
 * stands for what lies between two, and no more.
 */
const LONGEST_SAMPLE = 2;

const NOT_WORK = new Set(["(idle)", "(root)"]);

/** Of a profile that was sampled every so many microseconds. */
export function timesOf(
  { nodes, samples, timeDeltas }: CpuProfile,
  everyUs: number,
): { busyMs: number; functions: FunctionTimes[] } {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const selfOf = new Map<number, number>();
  for (const [n, id] of samples.entries()) {
    const us = Math.min(timeDeltas[n]!, LONGEST_SAMPLE * everyUs);
    selfOf.set(id, (selfOf.get(id) ?? 0) + us / 1_000);
  }

  const functions = new Map<string, FunctionTimes>();
  let busyMs = 0;
  for (const [id, selfMs] of selfOf) {
    if (NOT_WORK.has(byId.get(id)!.callFrame.functionName)) continue;
    busyMs += selfMs;
    const seen = new Set<string>();
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const { functionName: name, url, lineNumber: line, columnNumber } = byId.get(at)!.callFrame;
      const key = `${name} ${url}:${line}:${columnNumber}`;
      if (NOT_WORK.has(name) || seen.has(key)) continue;
      seen.add(key);
      let times = functions.get(key);
      if (!times) functions.set(key, (times = { name, url, line, selfMs: 0, totalMs: 0 }));
      times.totalMs += selfMs;
      if (at === id) times.selfMs += selfMs;
    }
  }
  return { busyMs, functions: [...functions.values()] };
}

/** The file that a line of esbuild's bundle comes from: its name stands in a comment above. */
export function moduleOfLine(bundle: string[], line: number): string {
  for (let at = line; at >= 0; at--) {
    const name = /^\/\/ ((?:src|node_modules|test)\/\S+)$/.exec(bundle[at] ?? "")?.[1];
    if (name !== undefined) return name.replace(/^node_modules\/((?:@[^/]+\/)?[^/]+)\/.*/, "$1");
  }
  return "bundle";
}
