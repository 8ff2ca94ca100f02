import type { Origin } from "./counts.ts";
import { count } from "./tally.ts";

/** A namespace of objects, each call of whose stubs is counted as made by `origin`. */
export function countingNamespace<T extends Rpc.DurableObjectBranded>(
  namespace: DurableObjectNamespace<T>,
  origin: Origin,
): DurableObjectNamespace<T> {
  const countingStub = <S extends object>(stub: S): S =>
    new Proxy(stub, {
      get:
        (target, method) =>
        (...input: unknown[]) => {
          count(origin, "objectCalls");
          return (target as Record<string | symbol, (...input: unknown[]) => unknown>)[method]!(...input);
        },
    });
  return {
    idFromName: (name: string) => namespace.idFromName(name),
    get: (...call: Parameters<typeof namespace.get>) => countingStub(namespace.get(...call)),
    getByName: (...call: Parameters<typeof namespace.getByName>) => countingStub(namespace.getByName(...call)),
  } as DurableObjectNamespace<T>;
}

/**
 * Counts what an object writes to its own storage, and how long it is at work: while a call, an alarm or something it has
 * left to `waitUntil` is under way. Several at once share one clock, as they do in the bill. Gives back what such work goes
 * through.
 */
export function watchObject(context: DurableObjectState, origin: Origin) {
  const { storage } = context;
  const setAlarm = storage.setAlarm.bind(storage);
  const put = storage.put.bind(storage) as (...input: unknown[]) => Promise<void>;
  const waitUntil = context.waitUntil.bind(context);
  let underWay = 0;
  let since = 0;

  async function during<T>(work: () => Promise<T>): Promise<T> {
    if (underWay++ === 0) since = Date.now();
    try {
      return await work();
    } finally {
      if (--underWay === 0) count(origin, "objectMs", Date.now() - since);
    }
  }

  Object.defineProperties(storage, {
    setAlarm: {
      value(at: number) {
        count(origin, "objectRowsWritten");
        return setAlarm(at);
      },
    },
    put: {
      value(...input: unknown[]) {
        count(origin, "objectRowsWritten");
        return put(...input);
      },
    },
  });
  Object.defineProperty(context, "waitUntil", {
    value: (work: Promise<unknown>) => waitUntil(during(() => work)),
  });
  return {
    call: during,
    async alarm(work: () => Promise<void>) {
      count(origin, "invocations");
      await during(work);
    },
  };
}
