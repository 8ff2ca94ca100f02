/**
 * Two plain relays for all files that want nothing of a relay but that it is there: a start costs seconds of a core, and each
 * test makes a tenant of its own. Each is started when somebody first asks for it. Vitest runs this in its own process.
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { findLeak } from "./leak.ts";
import { spawnRelay, type SpawnedRelay } from "./spawn-relay.ts";

const RELAYS = 2;

declare module "vitest" {
  interface ProvidedContext {
    /** Where it is said where a shared relay is. */
    sharedRelays: string;
  }
}

/** Where a shared relay is, and the file that gets all it prints. */
export interface SharedRelayPlace {
  url: string;
  log: string;
}

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-e2e-shared-"));
  const relays: { place: Promise<SharedRelayPlace>; relay: Promise<SpawnedRelay>; log: string }[] = [];
  let asked = 0;

  const server = createServer(async (_, response) => {
    const i = asked++ % RELAYS;
    relays[i] ??= start(join(folder, String(i)));
    await relays[i].place.then(
      (place) => response.end(JSON.stringify(place)),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  provide("sharedRelays", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);

  return async () => {
    server.closeAllConnections();
    server.close();
    const started = await Promise.allSettled(relays.map(({ relay }) => relay));
    await Promise.all(started.map((one) => one.status === "fulfilled" && one.value.stop()));
    const leaks = relays.flatMap(({ log }) => findLeak(readFileSync(log, "utf8")) ?? []);
    rmSync(folder, { recursive: true, force: true });
    if (leaks.length > 0) throw new Error(`A secret is in what a shared relay printed: ${leaks[0]}`);
  };
}

function start(stateDir: string) {
  const log = `${stateDir}.log`;
  writeFileSync(log, "");
  const relay = spawnRelay({
    stateDir,
    onSpawned(child) {
      // Its group is its own: whatever ends vitest would not end it.
      const end = () => void process.kill(-child.pid!, "SIGKILL");
      process.once("exit", end);
      child.once("exit", () => process.off("exit", end));
    },
    onPrinted: (text) => appendFileSync(log, text),
  });
  return { relay, log, place: relay.then(({ url }) => ({ url, log })) };
}
