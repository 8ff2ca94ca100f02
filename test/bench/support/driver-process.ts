/** What `startDriver` starts. */
import { Agent, request } from "node:http";
import { answerParent, cpuSecondsOfProcess, nowMs } from "./child.ts";
import type { Load, LoadResult } from "./driver.ts";

const agent = new Agent({ keepAlive: true, maxSockets: 1_024, scheduling: "lifo" });
/** So that no two runs share a key, of this process or of the one before it over the same state. */
const run = Math.floor(nowMs()).toString(36);
let sent = 0;

answerParent({ run: drive });

async function drive(load: Load): Promise<LoadResult> {
  const cpuBefore = cpuSecondsOfProcess();
  const { pathname, search, hostname, port } = new URL(load.url);
  const headers = { Authorization: `Bearer ${load.key}`, "Content-Type": "application/json" };
  const parts = load.bodies.map((body) => body.split("$N"));
  const statuses: Record<string, number> = {};
  const [ackMs, eventAckAt, slipMs]: [number[], number[], number[]] = [[], [], []];
  const eventIds: string[] = [];
  let started = 0;
  const startedAt = nowMs();
  const { until } = load;
  const mayStart = () => ("requests" in until ? started < until.requests : nowMs() < startedAt + until.seconds * 1_000);

  function post(dueAt: number): Promise<void> {
    const body = Buffer.from(parts[started++ % parts.length]!.join(`${run}-${++sent}`));
    return new Promise((resolve) => {
      const done = (status: string) => {
        statuses[status] = (statuses[status] ?? 0) + 1;
        const at = nowMs();
        ackMs.push(at - dueAt);
        resolve();
        return at;
      };
      const length = { "Content-Length": body.length };
      const outgoing = request({
        agent,
        hostname,
        port,
        path: pathname + search,
        method: "POST",
        headers: { ...headers, ...length },
      });
      outgoing.on("error", () => done("error"));
      outgoing.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", () => done("error"));
        response.on("end", () => {
          const at = done(String(response.statusCode));
          for (const id of idsOf(Buffer.concat(chunks).toString())) {
            eventIds.push(id);
            eventAckAt.push(at);
          }
        });
      });
      outgoing.end(body);
    });
  }

  if ("concurrency" in load.pace) {
    const worker = async () => {
      while (mayStart()) await post(nowMs());
    };
    await Promise.all(Array.from({ length: load.pace.concurrency }, worker));
  } else {
    const { perSecond } = load.pace;
    const under: Promise<void>[] = [];
    while (mayStart()) {
      const dueAt = startedAt + (started * 1_000) / perSecond;
      const waitMs = dueAt - nowMs();
      if (waitMs > 0) {
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        continue;
      }
      slipMs.push(-waitMs);
      under.push(post(dueAt));
    }
    await Promise.all(under);
  }

  return {
    statuses,
    eventIds,
    ackMs: Float64Array.from(ackMs),
    eventAckAt: Float64Array.from(eventAckAt),
    slipMs: Float64Array.from(slipMs),
    startedAt,
    endedAt: nowMs(),
    cpuSeconds: cpuSecondsOfProcess() - cpuBefore,
  };
}

/** Of what was accepted just now, in one answer; searched rather than parsed, since a batch's has much else. */
function idsOf(text: string): string[] {
  return Array.from(text.matchAll(/"id":"(evt_[^"]+)","duplicate":false/g), ([, id]) => id!);
}
