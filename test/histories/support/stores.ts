import type { Answer, Query } from "./sqlite.ts";
import type { World } from "./world.ts";

/** Where statements go: SQLite, or a real D1 beside it. */
export interface Ledger {
  execute(queries: Query[]): Answer[] | Promise<Answer[]>;
}

/** A D1 binding. Each trip to it is a call of the process that makes it. */
export function createD1(world: World, ledger: Ledger): D1Database {
  const trip = async (queries: Query[]) => {
    const owner = world.current!;
    return world.call("d1", world.isTraced ? `d1 ${queries.map(({ sql }) => nameOf(sql)).join("; ")}` : "d1", () => {
      const answers = ledger.execute(queries);
      return answers instanceof Promise ? answers.then(noted) : noted(answers);
    });

    function noted(answers: Answer[]): Answer[] {
      for (const [i, { sql, params }] of queries.entries()) {
        // Its first four parameters are the delivery's key, the sixth the attempt's number; before it stands the claim.
        if (!sql.startsWith("insert into attempt") || answers[i - 1]!.results.length === 0) continue;
        world.claimants.set([...params.slice(1, 4), params[5]].join(" "), owner);
      }
      return answers;
    }
  };
  const one = async (query: Query) => (await trip([query]))[0]!;

  function prepare(sql: string, params: unknown[] = []) {
    return {
      query: { sql, params },
      bind: (...values: unknown[]) => prepare(sql, values),
      all: () => one({ sql, params }),
      run: () => one({ sql, params }),
      raw: async () => (await one({ sql, params, asArrays: true })).results,
      async first(column?: string) {
        const row = ((await one({ sql, params })).results[0] ?? null) as Record<string, unknown> | null;
        return row && column !== undefined ? row[column] : row;
      },
    };
  }

  return {
    prepare: (sql: string) => prepare(sql),
    batch: (statements: { query: Query }[]) => trip(statements.map(({ query }) => query)),
  } as unknown as D1Database;
}

/** A bucket in memory. */
export function createBucket(world: World): R2Bucket {
  const objects = new Map<string, { bytes: Uint8Array; etag: string }>();
  let writes = 0;
  return {
    put: (key: string, bytes: Uint8Array, options?: { onlyIf?: { etagMatches: string } }) =>
      world.call("r2", `r2 put ${key}`, () => {
        const condition = options?.onlyIf?.etagMatches;
        if (condition !== undefined && objects.get(key)?.etag !== condition) return null;
        objects.set(key, { bytes: bytes.slice(), etag: String(++writes) });
        return { key };
      }),
    get: (key: string, options?: { range?: { offset: number; length: number } }) =>
      world.call("r2", `r2 get ${key}`, () => {
        const object = objects.get(key);
        if (!object) return null;
        const { offset = 0, length = object.bytes.length } = options?.range ?? {};
        const part = object.bytes.slice(offset, offset + length);
        return { etag: object.etag, arrayBuffer: async () => part.buffer };
      }),
    delete: (keys: string | string[]) =>
      world.call("r2", "r2 delete", () => {
        for (const key of [keys].flat()) objects.delete(key);
      }),
  } as unknown as R2Bucket;
}

/** The first words of a statement, for the trace. */
const nameOf = (sql: string) => sql.replaceAll(/\s+/g, " ").trim().slice(0, 48);
