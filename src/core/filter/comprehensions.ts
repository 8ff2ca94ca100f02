import type { Evaluate } from "./compile.ts";
import { Fault, type Run, type Value } from "./values.ts";

/** One of CEL's macros over the elements of a list, or the keys of a map. */
export interface Loop {
  /** How many arguments it takes, the variable among them. */
  arities: number[];
  /** `take` makes an item the variable's value, and pays for it. */
  run(
    run: Run,
    items: Iterable<Value>,
    bodies: Evaluate[],
    positions: number[],
    take: (item: Value) => void,
  ): Value | Fault;
}

export const COMPREHENSIONS: Record<string, Loop> = {
  all: { arities: [2], run: quantify(false) },
  exists: { arities: [2], run: quantify(true) },
  exists_one: {
    arities: [2],
    run(run, items, [holds], [position], take) {
      let count = 0;
      for (const item of items) {
        take(item);
        const value = toBoolean(holds!(run), position!);
        if (value instanceof Fault) return value;
        if (value) count++;
      }
      return count === 1;
    },
  },
  filter: {
    arities: [2],
    run(run, items, [holds], [position], take) {
      const kept: Value[] = [];
      for (const item of items) {
        take(item);
        const value = toBoolean(holds!(run), position!);
        if (value instanceof Fault) return value;
        if (value) kept.push(item);
      }
      return kept;
    },
  },
  map: {
    arities: [2, 3],
    run(run, items, bodies, [position], take) {
      const holds = bodies.length === 2 ? bodies[0]! : null;
      const change = bodies.at(-1)!;
      const changed: Value[] = [];
      for (const item of items) {
        take(item);
        const isKept = holds === null || toBoolean(holds(run), position!);
        if (isKept instanceof Fault) return isKept;
        if (!isKept) continue;
        const value = change(run);
        if (value instanceof Fault) return value;
        changed.push(value);
      }
      return changed;
    },
  },
};

/** One item that decides is enough, whatever is wrong with the others, as with && and ||. */
function quantify(decides: boolean): Loop["run"] {
  return (run, items, [holds], [position], take) => {
    let fault: Fault | null = null;
    for (const item of items) {
      take(item);
      const value = toBoolean(holds!(run), position!);
      if (value === decides) return decides;
      if (value instanceof Fault) fault ??= value;
    }
    return fault ?? !decides;
  };
}

function toBoolean(value: Value | Fault, position: number): boolean | Fault {
  return typeof value === "boolean" || value instanceof Fault ? value : new Fault("type_mismatch", position);
}
