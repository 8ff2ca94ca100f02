/** What a stretch of work cost, counted at the bindings by what they themselves say. */
export interface Cost {
  rowsWritten: number;
  rowsRead: number;
  /** Round trips to D1. */
  ledgerTrips: number;
  /** R2 puts and lists. */
  classA: number;
  /** R2 gets and heads. */
  classB: number;
  queueMessages: number;
  objectCalls: number;
}

export function createCost(): Cost {
  return { rowsWritten: 0, rowsRead: 0, ledgerTrips: 0, classA: 0, classB: 0, queueMessages: 0, objectCalls: 0 };
}

/**
 * The environment with every call of a binding counted into `cost`. The calls go through, but for messages: a test that
 * counts rings itself, or it would count what a consumer does beside it.
 */
export function countingEnv(env: Env, cost: Cost): Env {
  const counted: Record<string, unknown> = {};
  for (const [name, binding] of Object.entries(env)) counted[name] = binding;
  for (const name of Object.keys(env).filter((name) => /^DB(_\d+)?$/.test(name))) {
    counted[name] = countingDatabase(env[name as "DB"], cost);
  }
  counted["PAYLOADS"] = countingCalls(env.PAYLOADS, {
    put: () => cost.classA++,
    list: () => cost.classA++,
    get: () => cost.classB++,
    head: () => cost.classB++,
  });
  for (const name of ["FIRST_ATTEMPTS", "RETRIES", "OUTCOMES"]) {
    counted[name] = {
      send: async () => void cost.queueMessages++,
      sendBatch: async (messages: unknown[]) => void (cost.queueMessages += messages.length),
    };
  }
  counted["WATCHDOG"] = countingCalls(env.WATCHDOG, { getByName: () => cost.objectCalls++ });
  return counted as unknown as Env;
}

function countingDatabase(db: D1Database, cost: Cost): D1Database {
  const count = (results: D1Result[]) => {
    cost.ledgerTrips++;
    for (const { meta } of results) {
      cost.rowsWritten += meta.rows_written;
      cost.rowsRead += meta.rows_read;
    }
  };
  const wrap = (statement: D1PreparedStatement): D1PreparedStatement =>
    new Proxy(statement, {
      get(target, property) {
        if (property === "inner") return target;
        if (property === "bind") return (...values: unknown[]) => wrap(target.bind(...values));
        if (property === "all" || property === "run") {
          return async () => {
            const result = await target.all();
            count([result]);
            return result;
          };
        }
        if (property === "first") {
          return async () => {
            const result = await target.all();
            count([result]);
            return result.results[0] ?? null;
          };
        }
        const value = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  return {
    prepare: (sql: string) => wrap(db.prepare(sql)),
    async batch(statements: D1PreparedStatement[]) {
      const results = await db.batch(statements.map((statement) => (statement as any).inner ?? statement));
      count(results);
      return results;
    },
  } as unknown as D1Database;
}

function countingCalls<T extends object>(binding: T, counters: Record<string, (...args: any[]) => unknown>): T {
  return new Proxy(binding, {
    get(target, property) {
      const value = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        counters[property as string]?.(...args);
        return value.apply(target, args);
      };
    },
  });
}
