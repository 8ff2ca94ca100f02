import { EndpointLane, Watchdog } from "../../../../src/index.ts";
import type { Calls, Owner } from "./calls.ts";

interface Kept {
  alarm: number | null;
  data: Map<string, unknown>;
  /** Alarms of one object go off one after another. */
  ringing: Promise<void>;
  instance: any;
  owner: Owner | null;
}

const ALARM_RETRY_MS = 2_000;
const ALARM_TRIES = 6;
const ALARM_LIMIT_MS = 15 * 60_000;
const LATE_ALARM_MS = 5 * 60_000;

/**
 * The Worker's own objects, whose clock, alarms and resets a test holds: their code is the real one, their disk is what a
 * runtime keeps for them, an alarm and a few values.
 */
export function createObjects(
  calls: Calls,
  createOwner: (name: string) => Owner,
  compose: (owner: Owner) => { env: Env; waitUntil(work: Promise<unknown>): void; exports: unknown },
) {
  const kept = new Map<string, Kept>();

  function keptOf(name: string): Kept {
    let one = kept.get(name);
    if (!one)
      kept.set(name, (one = { alarm: null, data: new Map(), ringing: Promise.resolve(), instance: null, owner: null }));
    return one;
  }

  /** The instance that is there, or a new one: its predecessor was reset and knows of nothing. */
  function object(name: string): any {
    const one = keptOf(name);
    if (one.instance && !one.owner!.isDead) return one.instance;
    const kind = name.split(":")[0]!;
    const owner = createOwner(kind);
    const { env, waitUntil, exports } = compose(owner);
    const act = <T>(what: string, isRead: boolean, work: () => T) =>
      calls.run(owner, `storage ${what}`, isRead ? "read" : "write", async () => work());
    const storage = {
      getAlarm: () => act("getAlarm", true, () => one.alarm),
      setAlarm: (at: number) => act("setAlarm", false, () => setAlarm(name, one, at)),
      get: (key: string) => act("get", true, () => one.data.get(key)),
      put: (key: string, value: unknown) => act("put", false, () => void one.data.set(key, value)),
    };
    one.owner = owner;
    owner.replace = () => void (one.instance = null);
    one.instance = create(
      kind === "lane" ? EndpointLane : Watchdog,
      { id: { name }, waitUntil, exports, storage },
      env,
    );
    return one.instance;
  }

  function setAlarm(name: string, one: Kept, at: number): void {
    one.alarm = at;
    setTimeout(() => one.alarm === at && void goOff(name, one), Math.max(0, at - Date.now()));
  }

  async function goOff(name: string, one: Kept): Promise<void> {
    one.alarm = null;
    if (calls.state.isOver) return;
    const fault = calls.event(`${name.split(":")[0]} alarm`);
    if (fault === "is lost") return;
    if (fault === "comes late") await new Promise((resolve) => setTimeout(resolve, LATE_ALARM_MS));
    one.ringing = one.ringing.then(() => ring(name, one));
    if (fault === "comes twice") one.ringing = one.ringing.then(() => ring(name, one));
  }

  /** The runtime ends an alarm that takes too long, and the object with it. */
  async function ringInTime(name: string, one: Kept): Promise<void> {
    const ringing = object(name).alarm();
    const { owner } = one;
    let timer = 0;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        owner!.die();
        reject(new Error("too long"));
      }, ALARM_LIMIT_MS) as unknown as number;
    });
    await Promise.race([ringing, timeout]).finally(() => clearTimeout(timer));
  }

  async function ring(name: string, one: Kept): Promise<void> {
    for (let n = 0; n < ALARM_TRIES && !calls.state.isOver; n++) {
      try {
        return await ringInTime(name, one);
      } catch {
        await new Promise((resolve) => setTimeout(resolve, ALARM_RETRY_MS * 2 ** n));
        if (one.alarm !== null) return;
      }
    }
  }

  return { object };
}

/** Constructed over a context of the test's: the runtime's base class takes none but its own. */
function create(Class: typeof EndpointLane | typeof Watchdog, context: object, env: Env): unknown {
  const base = Object.getPrototypeOf(Class);
  class Base {
    ctx = context;
    env = env;
  }
  Object.setPrototypeOf(Class, Base);
  try {
    return new Class(context as unknown as DurableObjectState, env);
  } finally {
    Object.setPrototypeOf(Class, base);
  }
}
