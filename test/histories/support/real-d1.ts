import { readD1Migrations } from "@cloudflare/vitest-plugin";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";

type Query = { sql: string; params: unknown[]; asArrays?: boolean };
type Answers = { answers: { results: unknown[]; changes: number }[] } | { error: string };

/** Runs statements as they come, over the binding that the relay has. */
const SCRIPT = `
const revive = (value) => (value !== null && typeof value === "object" ? new Uint8Array(value.blob) : value);
const run = async (db, queries) => {
  const statements = queries.map(({ sql, params }) => db.prepare(sql).bind(...params.map(revive)));
  if (queries.length > 1) return db.batch(statements);
  return [queries[0].asArrays ? { results: await statements[0].raw(), meta: {} } : await statements[0].all()];
};
export default {
  async fetch(request, { DB }) {
    try {
      const answers = await run(DB, await request.json());
      return Response.json({ answers: answers.map(({ results, meta }) => ({ results, changes: meta.changes ?? 0 })) });
    } catch (error) {
      return Response.json({ error: String(error) });
    }
  },
};`;

/** A D1 database in the runtime, with all migrations. */
export async function startD1(migrations: string) {
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script: SCRIPT,
      compatibilityDate: "2026-10-01",
      d1Databases: ["DB"],
    }),
  );
  async function execute(queries: Query[]): Promise<Answers> {
    const body = JSON.stringify(queries, (_, value) => (value instanceof Uint8Array ? { blob: [...value] } : value));
    const response = await miniflare.dispatchFetch("http://d1.test/", { method: "POST", body });
    return (await response.json()) as Answers;
  }
  for (const { queries } of await readD1Migrations(migrations)) {
    for (const sql of queries) {
      const done = await execute([{ sql, params: [] }]);
      if ("error" in done) throw new Error(done.error);
    }
  }
  return { execute, stop: () => miniflare.dispose() };
}
