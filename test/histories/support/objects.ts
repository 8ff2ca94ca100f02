import { EndpointLane } from "../../../src/objects/endpoint-lane.ts";
import { Watchdog } from "../../../src/objects/watchdog.ts";
import { contextFor, type Send } from "./context.ts";
import type { Isolate } from "./isolate.ts";
import type { World } from "./world.ts";

type Kind = "lane" | "watchdog";
type Instance = { alarm(): Promise<void> } & Record<string, (...input: unknown[]) => Promise<unknown>>;

/** A named object: its disk stays, its process comes and goes. */
interface Slot {
  name: string;
  kind: Kind;
  alarm: number | null;
  isAlarmRunning: boolean;
  alarmFaults: number;
  disk: Map<string, unknown>;
  process: { isolate: Isolate; instance: Instance } | null;
}

const MAX_ALARM_FAULTS = 6;
const ALARM_RETRY_MS = 2_000;

/** Durable Objects of the relay's own classes: one process a name, alarms on the world's clock. */
export function createObjects(world: World, env: () => Env, send: Send) {
  const slots = new Map<string, Slot>();

  function slotOf(kind: Kind, name: string): Slot {
    let slot = slots.get(name);
    if (!slot) {
      slot = { name, kind, alarm: null, isAlarmRunning: false, alarmFaults: 0, disk: new Map(), process: null };
      slots.set(name, slot);
    }
    return slot;
  }

  function processOf(slot: Slot) {
    if (slot.process?.isolate.alive) return slot.process;
    const isolate = world.createIsolate(slot.name.split(":").slice(0, 1).concat(slot.name.slice(-6)).join("-"));
    const Class = slot.kind === "lane" ? EndpointLane : Watchdog;
    const state = { ...contextFor(world, isolate, send), id: { name: slot.name }, storage: storageOf(slot, isolate) };
    world.current = isolate;
    const instance = new Class(state as unknown as DurableObjectState, env()) as unknown as Instance;
    return (slot.process = { isolate, instance });
  }

  function storageOf(slot: Slot, isolate: Isolate) {
    /** What is not the object any more may not touch its disk. */
    const own = async <T>(work: () => T): Promise<T> => {
      if (slot.process?.isolate !== isolate) throw new Error("Durable Object reset because its code was updated.");
      return work();
    };
    return {
      getAlarm: () => own(() => slot.alarm),
      setAlarm: (at: number) => own(() => setAlarm(slot, Math.ceil(at))),
      get: (key: string) => own(() => slot.disk.get(key)),
      put: (key: string, value: unknown) => own(() => void slot.disk.set(key, value)),
    };
  }

  function setAlarm(slot: Slot, at: number): void {
    slot.alarm = at;
    const lateMs = world.weather.ofMessage(world.chance) === "late" ? world.chance.int(100, 20_000) : 0;
    world.at(Math.max(at, world.now) + lateMs, null, `alarm of ${slot.name}`, () => fire(slot, at));
  }

  /** At least once: one that did not end well comes again. */
  function fire(slot: Slot, at: number): void {
    if (slot.alarm !== at) return;
    if (slot.isAlarmRunning) return void world.at(world.now + 50, null, "alarm waits", () => fire(slot, at));
    slot.alarm = null;
    slot.isAlarmRunning = true;
    const { isolate, instance } = processOf(slot);
    world.invoke(
      isolate,
      () => instance.alarm(),
      (outcome) => {
        slot.isAlarmRunning = false;
        if ("value" in outcome) slot.alarmFaults = 0;
        else if (
          ++slot.alarmFaults <= MAX_ALARM_FAULTS &&
          (slot.alarm === null || slot.alarm > world.now + ALARM_RETRY_MS)
        )
          setAlarm(slot, world.now + ALARM_RETRY_MS);
      },
    );
  }

  function stubOf(slot: Slot) {
    return new Proxy({} as Record<string, unknown>, {
      get:
        (_, method: string) =>
        (...input: unknown[]) =>
          world.callBack("object", `${slot.kind}.${method}`, (answer) => {
            const { isolate, instance } = processOf(slot);
            world.invoke(isolate, () => instance[method]!(...input), answer);
          }),
    });
  }

  return {
    WATCHDOG: { getByName: (name: string) => stubOf(slotOf("watchdog", name)) },
    LANES: { idFromName: (name: string) => name, get: (name: string) => stubOf(slotOf("lane", name)) },
    /** Those that run. */
    running: (kind: Kind) => [...slots.values()].filter((slot) => slot.kind === kind && slot.process?.isolate.alive),
    crash(slot: Slot): void {
      world.kill(slot.process!.isolate);
    },
    /** The next call makes another; the old one ends what it has begun, without its disk. */
    replace(slot: Slot): Isolate {
      const { isolate } = slot.process!;
      isolate.isOld = true;
      slot.process = null;
      return isolate;
    },
    alarms: () => [...slots.values()].map(({ name, alarm }) => ({ name, alarm })),
  };
}
