/** `npm start`: the relay on http://localhost:${PORT:-8787}, state kept under ${HOOKLANE_STATE:-.wrangler/state}. */
import { SETTING_NAMES } from "../src/env.ts";
import { startRelay } from "./relay.ts";

const { env } = process;
const relay = await startRelay({
  port: Number(env["PORT"] ?? 8787),
  stateDir: env["HOOKLANE_STATE"] ?? ".wrangler/state",
  shards: Number(env["HOOKLANE_SHARDS"] ?? 1),
  entry: env["HOOKLANE_ENTRY"],
  settings: Object.fromEntries(SETTING_NAMES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
});

let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  // Miniflare's own handler would end the process in the middle of the stop, with a code that says it was killed.
  process.removeAllListeners(signal);
  process.on(signal, async () => {
    if (stopping) return;
    stopping = true;
    await relay.stop();
    process.exit(0);
  });
}
console.log(`Hooklane ready on ${relay.url}`);
