import { vi } from "vitest";
import type * as InFlightModule from "../../../src/app/deliver/in-flight.ts";
import type * as PublishConfigModule from "../../../src/app/publish/publish-config.ts";
import { held } from "./globals.ts";
import type { Memory } from "./isolate.ts";

/**
 * What the relay's modules keep for an isolate, each process of a world has for itself, and it goes with it. The rest of
 * their memory says how lately a shard's watchdog was armed and which of its lanes rest, and each history has a shard of its own.
 */
const ofTheProcess = <K extends keyof Memory>(name: K): Memory[K] =>
  new Proxy({} as Memory[K], {
    get(_, property) {
      const memory = held.world!.current!.memory[name];
      const value = Reflect.get(memory, property) as unknown;
      return typeof value === "function" ? value.bind(memory) : value;
    },
  });

vi.mock("../../../src/app/deliver/in-flight.ts", () => ({ createInFlight: () => ofTheProcess("inFlight") }));
vi.mock("../../../src/app/publish/publish-config.ts", async (importOriginal) => ({
  ...(await importOriginal<object>()),
  createPublishConfigCache: () => ofTheProcess("publishConfigs"),
}));

const real = {
  ...(await vi.importActual<typeof InFlightModule>("../../../src/app/deliver/in-flight.ts")),
  ...(await vi.importActual<typeof PublishConfigModule>("../../../src/app/publish/publish-config.ts")),
};

export const createMemory = (): Memory => ({
  inFlight: real.createInFlight(),
  publishConfigs: real.createPublishConfigCache(),
});
