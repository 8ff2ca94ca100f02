import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { connectInspectors } from "./support/inspector.ts";
import { runBurst } from "./support/burst.ts";
import { moduleOfLine, timesOf, type CpuProfile } from "./support/cpu-profile.ts";
import { eventBody, startDriver } from "./support/driver.ts";
import { startReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { Row, Section } from "./support/section.ts";
import { formatTable, round } from "./support/table.ts";

const OUTPUT = join(resolve(import.meta.dirname, "../.."), "bench-results.cpuprofile");
const SAMPLE_EVERY_US = 1_000;
const SHOWN = 30;
const ISOLATES_SHOWN = 8;
const OURS = "core:user:hooklane";

/**
 * Where the time of the relay's isolate goes while 64 producers publish: by module and by function, of what is its own. D1, R2 and the
 * queues of this machine are isolates of their own on the same thread: how much each takes stands below, and what is left of
 * `cpu s/1000` is the runtime itself: SQLite, files, sockets, and taking samples.
 */
export const profile: Section = async (context) => {
  const port = await findFreePort();
  const relay = await startRelay({ env: { HOOKLANE_INSPECTOR_PORT: String(port) } });
  const [receiver, driver] = [await startReceiver(), startDriver()];
  try {
    const { call, key } = await createTenant(relay, "profile");
    await subscribe({ call }, { url: `${receiver.url}/profile`, type: "profile" });
    const load = {
      key,
      url: `${relay.url}/v1/events`,
      bodies: [eventBody("profile", 1_000)],
      pace: { concurrency: 64 },
    };
    const place = { relay, receiver, driver };
    await runBurst(place, context, "/profile", { ...load, until: { requests: 300 } });
    const inspectors = await connectInspectors(port);
    for (const { send } of inspectors.values()) {
      await send("Profiler.enable");
      await send("Profiler.setSamplingInterval", { interval: SAMPLE_EVERY_US });
      await send("Profiler.start");
    }
    const requests = context.quick ? 500 : 2_000;
    const { row, accepted } = await runBurst(place, context, "/profile", { ...load, until: { requests } });
    const byIsolate: Row[] = [];
    for (const [isolate, { send }] of inspectors) {
      const taken = (await send("Profiler.stop"))["profile"] as CpuProfile;
      if (isolate === OURS) writeFileSync(OUTPUT, JSON.stringify(taken));
      byIsolate.push({ isolate, "ms/1000": round((timesOf(taken, SAMPLE_EVERY_US).busyMs / accepted) * 1_000) });
    }
    const bundle = await inspectors.get(OURS)!.readScript(/index\.js$/);
    for (const { close } of inspectors.values()) close();

    const lines = bundle.split("\n");
    const { busyMs, functions } = timesOf(JSON.parse(readFileSync(OUTPUT, "utf8")), SAMPLE_EVERY_US);
    const modules = Map.groupBy(functions, ({ url, line }) =>
      isOurs(url) ? moduleOfLine(lines, line) : url || "runtime",
    );
    const byModule: Row[] = [...modules].map(([module, some]) => ({
      module,
      "ms/1000": round((some.reduce((sum, { selfMs }) => sum + selfMs, 0) / accepted) * 1_000),
    }));
    const byFunction: Row[] = functions.map(({ name, url, line, selfMs, totalMs }) => ({
      function: name || "(anonymous)",
      module: isOurs(url) ? moduleOfLine(lines, line) : url || "runtime",
      "self ms/1000": round((selfMs / accepted) * 1_000),
      "with callees ms/1000": round((totalMs / accepted) * 1_000),
    }));
    const most = (rows: Row[], column: string) =>
      rows.toSorted((a, b) => (b[column] as number) - (a[column] as number)).slice(0, SHOWN);
    context.note(formatTable(most(byModule, "ms/1000")));
    context.note(`\n${formatTable(most(byFunction, "with callees ms/1000"))}`);
    context.note(`\nThe profile is in ${OUTPUT}`);
    context.note(
      `The isolate took ${round(busyMs / accepted, 2)} s of ${row["cpu s/1000"]} for 1,000 events. Of others:`,
    );
    context.note(formatTable(most(byIsolate, "ms/1000").slice(0, ISOLATES_SHOWN)));
    return most(byFunction, "self ms/1000");
  } finally {
    await Promise.all([relay.kill(), receiver.stop(), driver.stop()]);
  }
};

const isOurs = (url: string) => url.endsWith("index.js");

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
