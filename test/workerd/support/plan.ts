/** The steps of the plans of all statements that `work` prepares, as SQLite says them. */
export async function explain(db: D1Database, work: (db: D1Database) => Promise<unknown>): Promise<string[]> {
  const plans: Promise<string[]>[] = [];
  const planOf = async (statement: D1PreparedStatement) =>
    (await statement.all<{ detail: string }>()).results.map(({ detail }) => detail);
  const listening = new Proxy(db, {
    get(target, property) {
      if (property !== "prepare") {
        const value = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      }
      return (sql: string) => {
        const statement = target.prepare(sql);
        return new Proxy(statement, {
          get(of, name) {
            if (name === "bind") {
              return (...values: unknown[]) => {
                plans.push(planOf(target.prepare(`explain query plan ${sql}`).bind(...values)));
                return of.bind(...values);
              };
            }
            const value = Reflect.get(of, name);
            return typeof value === "function" ? value.bind(of) : value;
          },
        });
      };
    },
  });
  await work(listening);
  return (await Promise.all(plans)).flat();
}
