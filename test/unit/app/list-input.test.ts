import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AppError } from "../../../src/app/app-error.ts";
import { parsePage, readPage } from "../../../src/app/list-input.ts";
import { encodeCursor } from "../../../src/core/cursor.ts";
import type { PageKey, PageRequest } from "../../../src/core/model.ts";

function refusal(query: unknown): AppError {
  try {
    parsePage(query, { endpoint_id: z.string().optional() }, "ep");
  } catch (error) {
    if (error instanceof AppError) return error;
  }
  throw new Error("was not refused");
}

describe("parsePage", () => {
  test("an empty query is the first fifty", () => {
    expect(parsePage({}, {}, "ep")).toEqual({ limit: 50, after: null });
  });

  test("the list's own parameters come beside the page's", () => {
    const page = parsePage({ limit: "250", endpoint_id: "ep_1" }, { endpoint_id: z.string().optional() }, "ep");
    expect(page).toEqual({ limit: 250, after: null, endpoint_id: "ep_1" });
  });

  test.each(["0", "251", "-1", "1.5", "1e2", "", " 5", "0x10", "9999"])("limit %j is refused by name", (limit) => {
    expect(refusal({ limit })).toMatchObject({ code: "validation_failed", errors: [{ path: "limit" }] });
  });

  test.each(["", "x", "WzFd", "bnVsbA"])("cursor %j is refused by name", (cursor) => {
    expect(refusal({ cursor })).toMatchObject({ code: "validation_failed", errors: [{ path: "cursor" }] });
  });

  test("a cursor of another list is refused, and not an empty page that says it is the last", () => {
    const cursor = encodeCursor([1, "src_0000000000000000"]);
    expect(refusal({ cursor })).toMatchObject({ code: "validation_failed", errors: [{ path: "cursor" }] });
  });

  test("an unknown parameter is refused by name", () => {
    expect(refusal({ page: "2" })).toMatchObject({ code: "validation_failed", errors: [{ path: "page" }] });
  });
});

describe("readPage", () => {
  test("following the cursors shows every row once, in order, and the last page has none", async () => {
    const rowSets = fc.uniqueArray(fc.record({ createdAt: fc.nat(5), id: fc.stringMatching(/^ep_[a-z]{1,4}$/) }), {
      selector: (row) => row.id,
      maxLength: 25,
    });
    await fc.assert(
      fc.asyncProperty(rowSets, fc.integer({ min: 1, max: 7 }), async (rows, limit) => {
        const sorted = rows.toSorted(newestFirst);
        const seen: PageKey[] = [];
        let cursor: string | undefined;
        do {
          const query = { limit: String(limit), ...(cursor !== undefined && { cursor }) };
          const page = await readPage(parsePage(query, {}, "ep"), readFrom(sorted), (row) => row);
          expect(page.data.length).toBeLessThanOrEqual(limit);
          seen.push(...page.data);
          cursor = page.nextCursor ?? undefined;
        } while (cursor !== undefined);
        expect(seen).toEqual(sorted);
      }),
      { seed: 20_262, numRuns: 100 },
    );
  });
});

function newestFirst(a: PageKey, b: PageKey): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}

function readFrom(sorted: PageKey[]) {
  return async ({ limit, after }: PageRequest) =>
    sorted.filter((row) => after === null || newestFirst(row, after) > 0).slice(0, limit);
}
