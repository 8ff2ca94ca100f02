/** An ordered walk over an index, newest first: `from` is everything between `select …` and the filters. */
export interface Walk {
  /** Table expression and where clause that the index serves, with numbered parameters from ?1. */
  from: string;
  /** In the order of the index, newest first. */
  orderBy: string;
  parameters: (string | number)[];
}

export interface Filter {
  /** A condition with `?` for its one value. */
  sql: string;
  value: string | number;
}

/**
 * Rows that one call looks at. A filter that no index serves is answered in bounded time: a page may come back short, even
 * empty, with a cursor that goes on from where looking stopped.
 */
export const MAX_LOOKED_AT = 2_000;

/**
 * Two statements for one page of a walk: the rows that pass the filters among the next MAX_LOOKED_AT, and the last row
 * looked at when there may be more behind it.
 */
export function pageStatements(
  db: D1Database,
  walk: Walk,
  columns: string,
  keyColumns: string,
  filters: Filter[],
  limit: number,
): D1PreparedStatement[] {
  const conditions = filters.map(({ sql }, i) => sql.replace("?", `?${walk.parameters.length + i + 1}`));
  const where = conditions.length > 0 ? `where ${conditions.join(" and ")}` : "";
  return [
    db
      .prepare(
        `select ${columns} from (select * from ${walk.from} order by ${walk.orderBy} limit ${MAX_LOOKED_AT}) d
         ${where} order by ${walk.orderBy} limit ${limit + 1}`,
      )
      .bind(...walk.parameters, ...filters.map(({ value }) => value)),
    db
      .prepare(`select ${keyColumns} from ${walk.from} order by ${walk.orderBy} limit 1 offset ${MAX_LOOKED_AT - 1}`)
      .bind(...walk.parameters),
  ];
}
