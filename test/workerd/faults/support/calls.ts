import { vi } from "vitest";

const HOUR_MS = 3_600_000;

/** What may go wrong with one call of a binding. */
export type CallFault =
  | "throws before"
  | "takes effect, then throws"
  | "hangs, and answers late"
  | "hangs, and takes effect late"
  | "its process dies after"
  | "its object is taken for lost"
  | "the clock goes an hour on"
  | "the clock goes an hour back";
/** What may go wrong with a message that is handed out, or an alarm that goes off. */
export type EventFault = "is lost" | "comes twice" | "comes late" | "comes early";
export type Fault = CallFault | EventFault;

export interface Call {
  n: number;
  /** Who made it, and what: the first words of a statement, or the method of a binding. */
  name: string;
  kind: "read" | "write" | "request" | "event";
}

export interface Strike {
  at: number;
  fault: Fault;
}

/** One run of the Worker's code: a request, a batch of a queue, an object's life. Dead, none of its calls comes back. */
export interface Owner {
  name: string;
  isDead: boolean;
  die(): void;
  /** Of an object: another takes its name, while it goes on. */
  replace?(): void;
}

/** What hangs for good hangs until the world ends, so that no run leaves anything under way to the next. */
const isOver = () => new Error("The world is over.");

/**
 * Every call that the Worker makes, in order, and the faults that strike some. Nothing else is between the Worker and its
 * bindings: a fault is an answer that does not come, or another one, at exactly one of its awaits.
 */
export function createCalls(strikes: Strike[]) {
  const calls: Call[] = [];
  const parked: (() => void)[] = [];
  const firsts: { pattern: RegExp; fault: Fault }[] = [];
  const hung: ((error: Error) => void)[] = [];
  const state = { isCounting: false, isOver: false, active: 0, activity: 0, jumpedMs: 0, struck: [] as string[] };

  function strikeOf(name: string, kind: Call["kind"]): Fault | null {
    const first = firsts.findIndex(({ pattern }) => pattern.test(name));
    if (first >= 0) return firsts.splice(first, 1)[0]!.fault;
    if (!state.isCounting) return null;
    const n = calls.length + 1;
    calls.push({ n, name, kind });
    const fault = strikes.find(({ at }) => at === n)?.fault ?? null;
    if (fault) state.struck.push(`${n} (${name}) ${fault}`);
    return fault;
  }
  /** Nothing that waits comes sooner, or later, by it. */
  function jump(ms: number): void {
    state.jumpedMs += ms;
    vi.setSystemTime(Date.now() + ms);
  }
  const never = () => new Promise<never>((_, reject) => void hung.push(reject));
  const late = () =>
    new Promise<void>((resolve, reject) => {
      parked.push(resolve);
      hung.push(reject);
    });
  /** Real I/O: until it is done the clock stands still. */
  async function track<T>(work: () => Promise<T>): Promise<T> {
    state.active++;
    state.activity++;
    try {
      return await work();
    } finally {
      state.active--;
      state.activity++;
    }
  }

  async function run<T>(owner: Owner, what: string, kind: Call["kind"], work: () => Promise<T>): Promise<T> {
    if (state.isOver) throw isOver();
    if (owner.isDead) return never();
    const fault = strikeOf(`${owner.name}: ${what}`, kind);
    const act = kind === "request" ? work : () => track(work);
    if (fault === "throws before") throw new Error(`${what}: refused by the test`);
    if (fault === "the clock goes an hour on") jump(HOUR_MS);
    if (fault === "the clock goes an hour back") jump(-HOUR_MS);
    if (fault === "its object is taken for lost") owner.replace?.();
    if (fault === "hangs, and takes effect late") await late();
    const answer = await act();
    if (fault === "takes effect, then throws") throw new Error(`${what}: answer lost by the test`);
    if (fault === "its process dies after") owner.die();
    if (fault === "hangs, and answers late") await late();
    return owner.isDead ? never() : answer;
  }

  return {
    calls,
    state,
    run,
    track,
    jump,
    event: (name: string) => strikeOf(name, "event") as EventFault | null,
    /** What the scenario is about: a fault of the first call with such a name, besides those that are swept. */
    strikeFirst: (pattern: RegExp, fault: Fault) => void firsts.push({ pattern, fault }),
    /** Resolves when everything else is done, with what was late. */
    late,
    hasLate: () => parked.length > 0,
    /** What was late comes now. */
    release: () => parked.splice(0).forEach((go) => go()),
    end() {
      state.isOver = true;
      hung.splice(0).forEach((reject) => reject(isOver()));
    },
  };
}

export type Calls = ReturnType<typeof createCalls>;

/**
 * The faults worth trying on a call: what a read did not change, a lost answer of it does not either; and who dies before a call
 * dies after the one before it.
 */
export function faultsOf({ name, kind }: Call): Fault[] {
  switch (kind) {
    case "read":
      return ["throws before", "hangs, and answers late"];
    case "event":
      return ["is lost", "comes twice", "comes late", ...(name.startsWith("message") ? ["comes early" as const] : [])];
    default:
      return [
        "throws before",
        "takes effect, then throws",
        "hangs, and answers late",
        "hangs, and takes effect late",
        "its process dies after",
        ...(name.startsWith("lane") ? ["its object is taken for lost" as const] : []),
      ];
  }
}
