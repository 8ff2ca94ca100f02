import { z } from "zod";
import type { Page, TwoWayPage } from "../../app/list-input.ts";
import { ANSWERS } from "../openapi/registries.ts";

/** The one form of every list. */
export function presentPage<T, P>(page: Page<T>, present: (row: T) => P): { data: P[]; next_cursor: string | null } {
  return { data: page.data.map(present), next_cursor: page.nextCursor };
}

/** Its schema, named `<noun>Page`. */
export function pageOf<T extends z.ZodType>(noun: string, row: T) {
  return z.object({ data: z.array(row), next_cursor: z.string().nullable() }).register(ANSWERS, { id: `${noun}Page` });
}

/** The one form of lists that are read both ways. */
export function presentTwoWayPage<T, P>(page: TwoWayPage<T>, present: (row: T) => P) {
  return { ...presentPage(page, present), prev_cursor: page.prevCursor };
}

/** Its schema, named `<noun>Page`. */
export function twoWayPageOf<T extends z.ZodType>(noun: string, row: T) {
  return z
    .object({ data: z.array(row), next_cursor: z.string().nullable(), prev_cursor: z.string().nullable() })
    .register(ANSWERS, { id: `${noun}Page` });
}
