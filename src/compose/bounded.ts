import { interceptDatabase } from "./intercept-database.ts";

/**
 * A call of a store that never comes back must not keep its caller for ever: a lane would stand still, a watchdog look after
 * nobody, room in memory stay taken. One that takes longer than this is taken to have failed, and may have taken effect all
 * the same, as after any other lost answer. D1 itself ends a query after thirty seconds.
 */
const STORE_LIMIT_MS = 30_000;

/** Leaves no timer behind: an object with one is paid for. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A store each of whose calls ends in time. */
export function bounded<T extends object>(store: T): T {
  const entries = Object.entries(store).map(([name, call]) => [
    name,
    (...input: unknown[]) => within(STORE_LIMIT_MS, call(...input)),
  ]);
  return Object.fromEntries(entries) as T;
}

/** A database each of whose trips ends in time. */
export function boundedDatabase(db: D1Database): D1Database {
  return interceptDatabase(db, (_, work) => within(STORE_LIMIT_MS, work()));
}
