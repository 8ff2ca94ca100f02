import type { Page } from "../../app/list-input.ts";

/** The one form of every list. */
export function presentPage<T, P>(page: Page<T>, present: (row: T) => P): { data: P[]; next_cursor: string | null } {
  return { data: page.data.map(present), next_cursor: page.nextCursor };
}
