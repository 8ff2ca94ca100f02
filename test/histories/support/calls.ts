import type { Isolate } from "./isolate.ts";
import type { OpKind } from "./weather.ts";

export type Outcome<T> = { value: T } | { error: unknown };

/** A call across the border of a process, until it is its turn. */
export interface Op {
  owner: Isolate;
  kind: OpKind;
  label: string;
  /** What it does where it arrives; its answer comes back through `answer`. */
  run(answer: (outcome: Outcome<any>) => void): void | Promise<void>;
  settle(outcome: Outcome<any>): void;
}

/** What happens at a moment; with an owner, unless that has died by then. */
export interface Timed {
  at: number;
  owner: Isolate | null;
  label: string;
  fire(): void | Promise<void>;
}
