import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mergePages } from "../../../src/core/merge-pages.ts";

/** Rows by a number that says their age: the greater, the newer. Hidden ones are those a filter keeps out. */
interface Row {
  key: number;
  hidden: boolean;
}

const newestFirst = (a: number, b: number) => b - a;
const keyOf = (row: Row) => row.key;
const shown = (key: number): Row => ({ key, hidden: false });

/** What `storage/ledger/paging` asks of the ledger, for one walk. */
function readPage(walk: Row[], after: number | null, limit: number, maxLookedAt: number) {
  const behind = walk.toSorted((a, b) => newestFirst(a.key, b.key)).filter(({ key }) => after === null || key < after);
  const rows = behind.slice(0, maxLookedAt).filter(({ hidden }) => !hidden);
  return { rows: rows.slice(0, limit + 1), stoppedAt: behind[maxLookedAt - 1]?.key ?? null };
}

const walkSets = fc
  .uniqueArray(fc.record({ key: fc.nat(200), hidden: fc.boolean(), walk: fc.nat(2) }), {
    selector: ({ key }) => key,
    maxLength: 40,
  })
  .map((rows) => [0, 1, 2].map((walk) => rows.filter((row) => row.walk === walk)));

test("following the cursors to the end shows every row once, in order, however far each page looks", () => {
  const limits = fc.integer({ min: 1, max: 6 });
  const looks = fc.integer({ min: 1, max: 12 });
  fc.assert(
    fc.property(walkSets, limits, looks, (walks, limit, maxLookedAt) => {
      const seen: number[] = [];
      let after: number | null = null;
      do {
        const pages: ReturnType<typeof readPage>[] = walks.map((walk) => readPage(walk, after, limit, maxLookedAt));
        const page: { rows: Row[]; next: number | null } = mergePages(pages, keyOf, newestFirst, limit);
        expect(page.rows.length).toBeLessThanOrEqual(limit);
        // A cursor that does not go on would be followed for ever.
        if (page.next !== null && after !== null) expect(page.next).toBeLessThan(after);
        seen.push(...page.rows.map(keyOf));
        after = page.next;
      } while (after !== null);
      const all = walks.flat().filter(({ hidden }) => !hidden);
      expect(seen).toEqual(all.map(keyOf).toSorted(newestFirst));
    }),
    { seed: 20_274, numRuns: 1_000 },
  );
});

describe("one page", () => {
  const merge = (pages: { rows: Row[]; stoppedAt: number | null }[], limit: number) =>
    mergePages(pages, keyOf, newestFirst, limit);

  test("without walks or rows is empty and the last", () => {
    expect(merge([], 2)).toEqual({ rows: [], next: null });
    expect(merge([{ rows: [], stoppedAt: null }], 2)).toEqual({ rows: [], next: null });
  });

  test("that is exactly full is the last when no walk has more", () => {
    const pages = [
      { rows: [shown(3)], stoppedAt: null },
      { rows: [shown(5)], stoppedAt: null },
    ];
    expect(merge(pages, 2)).toEqual({ rows: [shown(5), shown(3)], next: null });
  });

  test("goes on behind its last row when there is one more", () => {
    expect(merge([{ rows: [shown(9), shown(8), shown(7)], stoppedAt: null }], 2)).toEqual({
      rows: [shown(9), shown(8)],
      next: 8,
    });
  });

  test("leaves what lies behind the first walk that stopped looking", () => {
    const pages = [
      { rows: [shown(9), shown(4)], stoppedAt: null },
      { rows: [], stoppedAt: 6 },
      { rows: [], stoppedAt: 2 },
    ];
    expect(merge(pages, 5)).toEqual({ rows: [shown(9)], next: 6 });
  });

  test("may be empty and still go on, where looking stopped before anything was found", () => {
    expect(merge([{ rows: [], stoppedAt: 6 }], 5)).toEqual({ rows: [], next: 6 });
  });

  test("includes the row at which looking stopped", () => {
    expect(merge([{ rows: [shown(6)], stoppedAt: 6 }], 5)).toEqual({ rows: [shown(6)], next: 6 });
  });

  test("goes on behind its last row, not where looking stopped, when a walk's rows were cut short before that", () => {
    expect(merge([{ rows: [shown(9), shown(8), shown(7)], stoppedAt: 1 }], 2)).toMatchObject({ next: 8 });
  });
});
