/** What goes around each trip to a database: it is given the trip's statements, and makes the trip. */
export type Trip = <T>(sqls: string[], work: () => Promise<T>) => Promise<T>;

/** A database each of whose trips is made by `trip`. */
export function interceptDatabase(db: D1Database, trip: Trip): D1Database {
  const real = new WeakMap<object, { statement: D1PreparedStatement; sql: string }>();

  function wrap(statement: D1PreparedStatement, sql: string): D1PreparedStatement {
    const own = {
      bind: (...values: unknown[]) => wrap(statement.bind(...values), sql),
      first: (...column: [string]) => trip([sql], () => statement.first(...column)),
      all: () => trip([sql], () => statement.all()),
      run: () => trip([sql], () => statement.run()),
      raw: (...options: [{ columnNames: true }]) => trip([sql], () => statement.raw(...options)),
    } as D1PreparedStatement;
    real.set(own, { statement, sql });
    return own;
  }

  return {
    prepare: (sql: string) => wrap(db.prepare(sql), sql),
    batch: (statements: D1PreparedStatement[]) => {
      const known = statements.map((statement) => real.get(statement)!);
      const sqls = known.map(({ sql }) => sql);
      return trip(sqls, () => db.batch(known.map(({ statement }) => statement)));
    },
  } as D1Database;
}
