/** What `startReceiver` starts. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent, cpuSecondsOfProcess, nowMs } from "./child.ts";
import type { Manner, Received } from "./receiver.ts";

interface Path {
  manner: Manner;
  at: number[];
  eventIds: string[];
  sinceRelayedMs: number[];
  open: number;
  mostOpen: number;
}

const POLL_MS = 5;
const paths = new Map<string, Path>();

const server = createServer((request, response) => {
  const at = nowMs();
  const path = pathOf(request.url!.split("?", 1)[0]!);
  const { headers } = request;
  path.at.push(at);
  path.eventIds.push(String(headers["x-webhook-event-id"]));
  path.sinceRelayedMs.push(at - Date.parse(String(headers["x-webhook-relayed-at"])));
  path.mostOpen = Math.max(path.mostOpen, ++path.open);
  response.on("close", () => path.open--);
  const { status = 200, delayMs = 0, hangs = false } = path.manner;
  request.resume();
  if (hangs) return;
  request.on("end", () => {
    const answer = () => response.writeHead(status).end("ok");
    if (delayMs === 0) answer();
    else setTimeout(answer, delayMs);
  });
});
// A sender keeps its connections for as long as it likes.
server.keepAliveTimeout = 0;

answerParent({
  async listen() {
    server.listen(0, "127.0.0.1", 2_048);
    await once(server, "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
  behave({ path, manner }: { path: string; manner: Manner }) {
    pathOf(path).manner = manner;
  },
  take() {
    const taken: Record<string, Received> = {};
    for (const [name, { at, eventIds, sinceRelayedMs }] of paths) {
      taken[name] = {
        count: at.length,
        at: Float64Array.from(at),
        eventIds,
        sinceRelayedMs: Float64Array.from(sinceRelayedMs),
      };
      Object.assign(paths.get(name)!, { at: [], eventIds: [], sinceRelayedMs: [] });
    }
    return taken;
  },
  async waitFor({ path, count, quietMs }: { path: string; count: number; quietMs: number }) {
    const { at } = pathOf(path);
    const from = nowMs();
    while (at.length < count && nowMs() - (at.at(-1) ?? from) < quietMs) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    return at.length;
  },
  mostOpen: (path: string) => pathOf(path).mostOpen,
  cpuSeconds: cpuSecondsOfProcess,
});

function pathOf(name: string): Path {
  let path = paths.get(name);
  if (!path) {
    path = { manner: {}, at: [], eventIds: [], sinceRelayedMs: [], open: 0, mostOpen: 0 };
    paths.set(name, path);
  }
  return path;
}
