/**
 * `npm run bench:isolation`: what a black hole costs its neighbours. The real relay, a receiver that answers, one that never
 * does; healthy endpoints of the hole's tenant and of another get 20 events a second in all, the hole 50. The same is run
 * without the hole, with its events for nobody, and with one that answers; or one of them, as `npm run bench:isolation -- hole`. Lag is the arrival of a request less the `relayed_at` of its event.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createPlayground, type ApiCaller } from "../../scripts/api-caller.ts";

const root = resolve(import.meta.dirname, "../..");
const seconds = Number(process.env["BENCH_SECONDS"] ?? 20);
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 1);
/** Less than 100 for a machine that has other things to do. */
const percent = Number(process.env["BENCH_PERCENT"] ?? 100);

const WARM_UP_SECONDS = 4;
const HEALTHY_PER_SECOND = 20;
const HEALTHY_ENDPOINTS = 3;
const HOLE_PER_SECOND = 50;
const HOLE_TIMEOUT_MS = 15_000;
const WINDOW_MS = 4_000;
const MAX_WAIT_MS = 30_000;

/** `nobody`: the hole's events are published, and no endpoint gets them. */
type Neighbour = "none" | "nobody" | "answering" | "hole";
type Place = { call: ApiCaller; type: string };

const only = process.argv[2] as Neighbour | undefined;

for (let round = 0; round < rounds; round++) {
  if (only !== undefined) {
    await run(only);
    continue;
  }
  const none = await run("none");
  const nobody = await run("nobody");
  const answering = await run("answering");
  const hole = await run("hole");
  console.log(
    `p95 beside the hole / without it: ${(hole.p95 / none.p95).toFixed(2)}; ` +
      `/ with its events for nobody: ${(hole.p95 / nobody.p95).toFixed(2)}; ` +
      `/ beside one that answers: ${(hole.p95 / answering.p95).toFixed(2)}; latest beside the hole: ${hole.max} ms\n`,
  );
}

async function run(neighbour: Neighbour) {
  const lags = new Map<string, number[]>();
  const windows: number[][] = [];
  const arrived = new Set<string>();
  const receiver = await listen((request, response) => {
    const at = Date.now();
    const { headers } = request;
    request.resume().on("end", () => response.end("ok"));
    arrived.add(String(headers["x-webhook-event-id"]));
    const whose = request.url!.slice(1);
    if (!lags.has(whose)) lags.set(whose, []);
    if (at < measureFrom) return;
    const lag = at - Date.parse(String(headers["x-webhook-relayed-at"]));
    lags.get(whose)!.push(lag);
    (windows[Math.floor((at - measureFrom) / WINDOW_MS)] ??= []).push(lag);
  });
  let holeHeld = 0;
  let mostHeld = 0;
  const hole = await listen((request, response) => {
    request.resume();
    if (neighbour === "answering") return void response.end("ok");
    mostHeld = Math.max(mostHeld, ++holeHeld);
    response.on("close", () => holeHeld--);
  });

  const stateDir = mkdtempSync(join(tmpdir(), "hooklane-bench-"));
  const relay = spawn(process.execPath, [join(root, "scripts/start.ts")], {
    cwd: root,
    // A group of its own: the runtime is a process that outlives its parent.
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PORT: "0", HOOKLANE_STATE: stateDir, OPERATOR_TOKEN: "bench" },
  });
  let measureFrom = Infinity;
  try {
    const url = await readyUrl(relay.stdout);
    const places: Place[] = [];
    const tenants = [await createPlayground(url, "bench", "own"), await createPlayground(url, "bench", "other")];
    for (const [t, { call }] of tenants.entries()) {
      for (let n = 0; n < HEALTHY_ENDPOINTS; n++) {
        const type = `healthy.t${t}n${n}`;
        await subscribe(call, `${receiver.url}/${t === 0 ? "own" : "other"}`, type, HOLE_TIMEOUT_MS);
        places.push({ call, type });
      }
    }
    const { call } = tenants[0]!;
    let holeId = "";
    if (neighbour === "hole" || neighbour === "answering")
      holeId = await subscribe(call, hole.url, "hole", HOLE_TIMEOUT_MS);

    measureFrom = Date.now() + WARM_UP_SECONDS * 1_000;
    const until = measureFrom + seconds * 1_000;
    const published: string[] = [];
    const work = [
      produce((HEALTHY_PER_SECOND * percent) / 100, until, (n) => publish(places[n % places.length]!, published)),
    ];
    if (neighbour !== "none")
      work.push(produce((HOLE_PER_SECOND * percent) / 100, until, () => publish({ call, type: "hole" }, [])));
    await Promise.all(work);
    const quietBy = Date.now() + MAX_WAIT_MS;
    while (published.some((id) => !arrived.has(id)) && Date.now() < quietBy) await sleep(50);
    const missing = published.filter((id) => !arrived.has(id)).length;
    const cpuSeconds = cpuOf(relay.pid!);
    const all = summarise([...lags.values()].flat());
    const own = summarise(lags.get("own") ?? []);
    const other = summarise(lags.get("other") ?? []);
    const quarantined = holeId === "" ? null : (await call("GET", `/v1/endpoints/${holeId}`)).quarantined_at;
    console.log(
      `${neighbour.padEnd(9)}  all ${shown(all)} | own tenant ${shown(own)} | other tenant ${shown(other)}` +
        ` | relay's CPU ${cpuSeconds.toFixed(1)} s` +
        ` | p95 by 4 s ${windows.map((window) => summarise(window).p95).join(" ")} | not arrived ${missing}` +
        (holeId === "" ? "" : ` | neighbour held ${mostHeld} at most, quarantined: ${quarantined ?? "no"}`),
    );
    return all;
  } finally {
    process.kill(-relay.pid!, "SIGKILL");
    receiver.close();
    hole.close();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

/** Starts one publish after another at a steady rate, whatever each takes; resolves when all have been answered. */
async function produce(perSecond: number, until: number, one: (n: number) => Promise<void>): Promise<void> {
  const startedAt = Date.now();
  const under: Promise<void>[] = [];
  for (let n = 0; Date.now() < until; n++) {
    under.push(one(n));
    await sleep(Math.max(0, startedAt + ((n + 1) * 1_000) / perSecond - Date.now()));
  }
  await Promise.all(under);
}

async function publish({ call, type }: Place, published: string[]): Promise<void> {
  const { id } = await call("POST", "/v1/events", { type, source: "orders", payload: { n: 1 } });
  published.push(id);
}

async function subscribe(call: ApiCaller, url: string, pattern: string, timeoutMs: number): Promise<string> {
  const { id } = await call("POST", "/v1/endpoints", { url, timeout_ms: timeoutMs });
  await call("POST", "/v1/subscriptions", { endpoint_id: id, event_type_pattern: pattern });
  return id;
}

function summarise(lags: number[]) {
  const sorted = lags.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), max: sorted.at(-1) ?? NaN };
}

function shown({ count, p50, p95, max }: ReturnType<typeof summarise>): string {
  return `p50 ${p50} p95 ${p95} max ${max} ms of ${count}`;
}

async function listen(handle: Parameters<typeof createServer>[1]) {
  const server = createServer(handle!).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Goes on reading what is printed, or the relay would wait for that. */
function readyUrl(printed: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  return new Promise((ready, failed) => {
    printed.on("data", (chunk) => {
      if (text.length < 10_000) text += String(chunk);
      const url = /Hooklane ready on (\S+)/.exec(text)?.[1];
      if (url !== undefined) ready(url);
    });
    printed.on("end", () => failed(new Error(`The relay ended:\n${text}`)));
  });
}

/** Seconds of processor that a process group has used, which a busy machine does not change; NaN where /proc does not say. */
function cpuOf(group: number): number {
  let ticks = 0;
  try {
    for (const pid of readdirSync("/proc")) {
      if (!/^\d+$/.test(pid)) continue;
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      if (Number(fields[2]) === group) ticks += Number(fields[11]) + Number(fields[12]);
    }
    return ticks / 100;
  } catch {
    return NaN;
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
