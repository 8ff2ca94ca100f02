import type { Origin } from "./counts.ts";
import { count, countStatement } from "./tally.ts";

/** A database whose trips, and rows by its own account, are counted. `onTrip` hears of each before it is made. */
export function countingDatabase(db: D1Database, origin: Origin, onTrip: () => void): D1Database {
  const real = new WeakMap<object, { statement: D1PreparedStatement; sql: string }>();
  const begin = () => {
    onTrip();
    count(origin, "ledgerTrips");
  };

  function wrap(statement: D1PreparedStatement, sql: string): D1PreparedStatement {
    const all = async () => {
      begin();
      const result = await statement.all<Record<string, unknown>>();
      countStatement(origin, sql, result.meta as D1Meta);
      return result;
    };
    const own = {
      bind: (...values: unknown[]) => wrap(statement.bind(...values), sql),
      all,
      run: all,
      async first(column?: string) {
        const row = (await all()).results[0] ?? null;
        return row === null || column === undefined ? row : row[column];
      },
      /** Bare rows come without an account of what they cost. They are read of configuration only. */
      raw(options: { columnNames: true }) {
        begin();
        return statement.raw(options);
      },
    } as unknown as D1PreparedStatement;
    real.set(own, { statement, sql });
    return own;
  }

  return {
    prepare: (sql: string) => wrap(db.prepare(sql), sql),
    async batch(statements: D1PreparedStatement[]) {
      const known = statements.map((statement) => real.get(statement)!);
      begin();
      const results = await db.batch(known.map(({ statement }) => statement));
      for (const [i, { meta }] of results.entries()) countStatement(origin, known[i]!.sql, meta as D1Meta);
      return results;
    },
  } as D1Database;
}
