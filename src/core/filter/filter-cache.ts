import { compileFilter, type Filter } from "./filter.ts";

/** Compiled filters of an isolate, by their source; null for one that does not compile (any more). */
export type FilterCache = (source: string) => Filter | null;

/** Nodes of all filters together: of about 300 bytes each. Ten thousand filters of usual length have fewer. */
const MAX_REMEMBERED_NODES = 120_000;

/** Compiles each source once, and all of them again when they have become too many. */
export function createFilterCache(maxNodes = MAX_REMEMBERED_NODES, compile = compileFilter): FilterCache {
  const known = new Map<string, Filter | null>();
  let nodes = 0;
  return (source) => {
    const found = known.get(source);
    if (found !== undefined) return found;
    const compiled = compile(source);
    const filter = compiled.ok ? compiled.value : null;
    const size = filter?.size ?? 1;
    if (nodes + size > maxNodes) {
      known.clear();
      nodes = 0;
    }
    nodes += size;
    known.set(source, filter);
    return filter;
  };
}
