/** `npm start`: the relay on http://localhost:${PORT:-8787}, state kept under ${HOOKLANE_STATE:-.wrangler/state}. */
import { SETTING_NAMES } from "../src/env.ts";
import { startRelay, type Relay } from "./relay.ts";

const { env } = process;
const parent = process.ppid;
const PARENT_CHECK_MS = 500;
const port = wholeNumber("PORT", 8787, 0, 65_535);

const relay = await start().catch((error: unknown) => {
  const { message } = error as Error;
  console.error(
    /address already in use/i.test(message)
      ? `Port ${port} is in use. For a second relay: PORT=8788 HOOKLANE_STATE=.wrangler/second npm start`
      : message,
  );
  process.exit(1);
});

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await relay.stop();
  process.exit(0);
}
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  // Miniflare's own handler would end the process in the middle of the stop, with a code that says it was killed.
  process.removeAllListeners(signal);
  process.on(signal, stop);
}
// npm hands signals on, but for the one that kills it. Whoever sent that meant the relay.
if (env["npm_lifecycle_event"] === "start") {
  setInterval(() => process.ppid !== parent && stop(), PARENT_CHECK_MS).unref();
}
console.log(`Hooklane ready on ${relay.url}`);

async function start(): Promise<Relay> {
  return startRelay({
    port,
    stateDir: env["HOOKLANE_STATE"] || ".wrangler/state",
    shards: wholeNumber("HOOKLANE_SHARDS", 1, 1, 100),
    entry: env["HOOKLANE_ENTRY"],
    ...(env["HOOKLANE_INSPECTOR_PORT"] && { inspectorPort: wholeNumber("HOOKLANE_INSPECTOR_PORT", 0, 1, 65_535) }),
    settings: Object.fromEntries(SETTING_NAMES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
  });
}

function wholeNumber(name: string, fallback: number, min: number, max: number): number {
  const text = env[name] || String(fallback);
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  console.error(`${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}.`);
  process.exit(1);
}
