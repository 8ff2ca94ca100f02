import type { Export } from "../app/export/export-rows.ts";
import { formatTime } from "../core/timestamps.ts";

/**
 * The rows of an export, a line each, and a last line that is none: whoever has not got that has not got everything. Read as fast as it
 * is taken: a page is asked for when the one before has gone. The first comes before the answer, so that what cannot be read at all
 * is a problem with a status; a fault later on cuts the answer off.
 */
export async function ndjson<Row>(
  rows: Export<Row>,
  present: (row: Row) => unknown,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  let first: Awaited<ReturnType<typeof rows.next>> | null = await rows.next();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let text = "";
        // A page may hold nothing that is shown.
        while (text === "") {
          const { rows: some, end } = first ?? (await rows.next());
          first = null;
          text = some.map((row) => `${JSON.stringify(present(row))}\n`).join("");
          if (end) {
            const { nextCursor, hasMore, until } = end;
            const last = { next_cursor: nextCursor, has_more: hasMore, until: formatTime(until) };
            controller.enqueue(encoder.encode(`${text}${JSON.stringify(last)}\n`));
            return controller.close();
          }
        }
        controller.enqueue(encoder.encode(text));
      },
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  );
}
