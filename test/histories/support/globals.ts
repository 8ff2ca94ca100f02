import { subtle } from "./subtle.ts";
import type { World } from "./world.ts";

/** The world whose history is run. */
export const held: { world: World | null } = { world: null };

type Globals = Record<string, unknown>;
const platform: Globals = { setTimeout, clearTimeout, crypto };
const realNow = Date.now;
const realRandom = Math.random;
const { log, error } = console;

/** Puts a world's time and chance in the place of the platform's while `work` runs. */
export async function insideOf<T>(world: World, work: () => Promise<T>): Promise<T> {
  held.world = world;
  enter(world);
  try {
    return await work();
  } finally {
    leave();
    held.world = null;
  }
}

/** Work of the real world, with the platform's own time, while a history waits for it. */
export async function outside<T>(work: () => Promise<T>): Promise<T> {
  leave();
  try {
    return await work();
  } finally {
    enter(held.world!);
  }
}

function enter(world: World): void {
  put({
    setTimeout: (fire: () => void, ms = 0) =>
      world.at(world.now + Math.max(1, Math.ceil(ms)), world.current, "timer", fire),
    clearTimeout: (timer: unknown) => world.cancel(timer),
    crypto: { subtle, getRandomValues: (bytes: Uint8Array) => bytes.map(() => world.luck.int(0, 255)) },
  });
  Date.now = () => world.now;
  Math.random = () => world.luck.next();
  console.log = () => {};
  console.error = (line: unknown) => world.hear(String(line));
}

function leave(): void {
  put(platform);
  Date.now = realNow;
  Math.random = realRandom;
  Object.assign(console, { log, error });
}

function put(globals: Globals): void {
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { configurable: true, writable: true, value });
  }
}
