/** A piece of SQL with its parameters, each a plain `?`. */
export interface Sql {
  sql: string;
  values: (string | number)[];
}

/** A condition on a row `d` of a walk. */
export interface Filter extends Sql {
  /** Columns of the walk's table that it reads. */
  columns: string[];
  /** Rows of other tables that it reads, about. */
  seeks?: number;
}

/** A table that is listed, under the key that its lists go by. */
export interface Listed {
  table: string;
  /** In the list's order. */
  key: string[];
  /** Of the primary key, to come from a key to its row `d`. */
  identity: string[];
  /** What is answered of a row `d`. */
  columns: string;
}

/** An ordered walk over an index, with whatever the index itself bounds. */
export interface Walk extends Sql {
  /** The part of the list's key that the index has not got fixed, in its order. */
  order: string[];
  /** Rows it reads of each that it looks at, and once more to find where it stopped. */
  readsEach: number;
}

/**
 * How far one call looks. A filter that no index serves is answered in bounded steps: a page may come back short, even empty, with
 * a cursor that goes on from where looking stopped.
 */
export interface Reach {
  /** Rows that the first look of a walk looks at. Most pages are full then. */
  firstLook: number;
  /** Rows that the second look of all walks reads, about. */
  maxReads: number;
  /** Open deliveries, of each of their indexes, that are read to put them into the list's order. */
  maxOpen: number;
}

export const REACH: Reach = { firstLook: 500, maxReads: 100_000, maxOpen: 10_000 };

/** Rows that the second look of one of `walks` walks looks at. */
export function longLook({ firstLook, maxReads }: Reach, walk: Walk, filters: Filter[], walks: number): number {
  const seeks = filters.reduce((sum, filter) => sum + (filter.seeks ?? 0), 0);
  return Math.max(firstLook, Math.floor(maxReads / (walk.readsEach + seeks) / walks));
}

/**
 * Two statements for one page of a walk: the rows that pass the filters among the next `look`, and the last row looked at when
 * there may be more behind it.
 */
export function pageStatements(
  db: D1Database,
  listed: Listed,
  walk: Walk,
  filters: Filter[],
  page: { tenantId: string; limit: number; look: number; isTowardNewer: boolean },
): D1PreparedStatement[] {
  const key = listed.key.join(", ");
  const direction = page.isTowardNewer ? "asc" : "desc";
  const order = walk.order.map((column) => `${column} ${direction}`).join(", ");
  const seen = [...new Set(["tenant_id", ...listed.key, ...filters.flatMap(({ columns }) => columns)])].join(", ");
  const found = `select ${key} from (
      select ${seen} from ${walk.sql} order by ${order} limit ${page.look}) d
    where ${filters.map(({ sql }) => sql).join(" and ")} order by ${order} limit ${page.limit + 1}`;
  return [
    prepare(db, rowsOf(listed, { sql: found, values: [...walk.values, ...filters.flatMap(({ values }) => values)] }), [
      page.tenantId,
    ]),
    prepare(
      db,
      {
        sql: `select ${key} from ${walk.sql} order by ${order} limit 1 offset ${page.look - 1}`,
        values: walk.values,
      },
      [],
    ),
  ];
}

/** The rows behind keys, by primary key: what is answered of a row is read of those alone that are answered. */
export function rowsOf(listed: Listed, keys: Sql): Sql {
  const same = listed.identity.map((column) => `d.${column} = k.${column}`).join(" and ");
  return {
    sql: `select ${listed.columns} from (${keys.sql}) k cross join ${listed.table} d on ${same} and d.tenant_id = ?`,
    values: keys.values,
  };
}

export function prepare(db: D1Database, { sql, values }: Sql, more: (string | number)[] = []): D1PreparedStatement {
  return db.prepare(sql).bind(...values, ...more);
}
