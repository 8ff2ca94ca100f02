import type { Op, Outcome, Timed } from "./calls.ts";
import { createIsolate, type Isolate, type Memory } from "./isolate.ts";
import { createChance, type Chance } from "./random.ts";
import { CALM, type OpKind, type Weather } from "./weather.ts";

const nextTurn = (globalThis as unknown as { setImmediate(next: () => void): void }).setImmediate;
/** Far more than anything needs that comes to rest. */
const MAX_OPS_AT_ONCE = 20_000;
const AWAY = new Error("Network connection lost.");
const STORES = new Set<OpKind>(["d1", "r2", "queue"]);

/**
 * Time, chance, processes and what they wait for. Whatever crosses the border of a process is a call that waits here until it is
 * its turn.
 */
export class World {
  now: number;
  weather: Weather = CALM;
  chance: Chance;
  /** What the relay's own chance is. */
  luck: Chance;
  /** Whose code runs. */
  current: Isolate | null = null;
  /** Until when each store is away, and when the ledger was. */
  readonly away = { d1: 0, r2: 0, queue: 0 };
  readonly outages: { from: number; to: number }[] = [];
  /** Who opened each attempt, by the key of its row. */
  readonly claimants = new Map<string, Isolate>();
  readonly trace: string[] = [];
  readonly strange: string[] = [];
  isTraced = false;
  requests = 0;
  ops = 0;
  #ready: Op[] = [];
  #timed: Timed[] = [];
  #isolates = 0;
  readonly #troubles: { at: number; of: Isolate | null }[] = [];
  readonly #createMemory: () => Memory;

  constructor(seed: number, startsAt: number, createMemory: () => Memory) {
    this.now = startsAt;
    this.chance = createChance(seed, -1);
    this.luck = createChance(seed, -2);
    this.#createMemory = createMemory;
  }

  /** The relay has said that a process could not hand on what it knew: its queue or its watchdog refused a report. */
  hear(line: string): void {
    this.log(`says ${line}`);
    this.judge(line);
    if (/"what":"(queue attempt report|await reports|record from [^"]*)"/.test(line))
      this.#troubles.push({ at: this.now, of: this.current });
  }

  /** No weather says such things. */
  judge(text: string): void {
    if (/TypeError|ReferenceError|RangeError|SyntaxError|SQLITE|constraint|no such|ZodError/i.test(text))
      this.strange.push(text);
  }

  isExcused(since: number, by: Isolate): boolean {
    return this.#troubles.some(({ at, of }) => at >= since && of === by);
  }

  log(text: string): void {
    if (this.isTraced) this.trace.push(`${this.now % 100_000_000} ${this.current?.name ?? ""} ${text}`);
  }

  createIsolate(name: string): Isolate {
    return createIsolate(`${name}.${++this.#isolates}`, this.#createMemory());
  }

  kill(isolate: Isolate): void {
    if (!isolate.alive) return;
    this.log(`dies: ${isolate.name}`);
    Object.assign(isolate, { alive: false, diedAt: this.now });
    const left = this.#ready.filter(({ owner }) => owner === isolate);
    this.#ready = this.#ready.filter(({ owner }) => owner !== isolate);
    this.#timed = this.#timed.filter(({ owner }) => owner !== isolate);
    for (const tell of isolate.onDeath) tell();
    isolate.onDeath.clear();
    // What had left it arrives all the same.
    for (const op of left)
      if (STORES.has(op.kind) && this.chance.next() < 0.3) this.#later(null, op, () => op.run(() => {}));
  }

  /** A call across the border of the process that runs now. */
  call<T>(kind: OpKind, label: string, run: () => T | Promise<T>): Promise<T> {
    return this.callBack<T>(kind, label, (answer) => {
      try {
        const value = run();
        if (!(value instanceof Promise)) return answer({ value });
        return value.then(
          (value) => answer({ value }),
          (error: unknown) => answer({ error }),
        );
      } catch (error) {
        answer({ error });
      }
    });
  }

  /** The same, of a call that is answered when the other side gets to it. */
  callBack<T>(
    kind: OpKind,
    label: string,
    run: (answer: (outcome: Outcome<T>) => void) => void | Promise<void>,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const settle = (outcome: Outcome<T>) => ("value" in outcome ? resolve(outcome.value) : reject(outcome.error));
    const owner = this.current;
    if (!owner) throw new Error(`Nobody's call: ${label}`);
    if (owner.alive) this.#ready.push({ owner, kind, label, run, settle });
    return promise;
  }

  /** Answers wait for their turn too, so that others come between. */
  #answer(op: Op, outcome: Outcome<any>): void {
    if (!op.owner.alive) return;
    this.#ready.push({ ...op, kind: "answer", run: () => op.settle(outcome) });
  }

  /** Runs a piece of work in a process; `done` is told what came of it, or of the process. */
  invoke<T>(isolate: Isolate, work: () => Promise<T>, done: (outcome: Outcome<T>) => void): void {
    let isDone = false;
    const finish = (outcome: Outcome<T>) => {
      if (isDone) return;
      isDone = true;
      isolate.onDeath.delete(die);
      done(outcome);
    };
    const die = () => finish({ error: new Error("Network connection lost.") });
    if (!isolate.alive) return die();
    isolate.onDeath.add(die);
    this.current = isolate;
    work().then(
      (value) => finish({ value }),
      (error: unknown) => finish({ error }),
    );
  }

  /** Something happens at a moment; with an owner, unless that has died. */
  at(at: number, owner: Isolate | null, label: string, fire: () => void | Promise<void>): Timed {
    const timed = { at, owner, label, fire };
    this.#timed.push(timed);
    return timed;
  }

  cancel(timed: unknown): void {
    const index = this.#timed.indexOf(timed as Timed);
    if (index >= 0) this.#timed.splice(index, 1);
  }

  /** Lets up to `budget` things happen that can happen now, in some order. */
  async run(budget: number): Promise<void> {
    for (let left = Math.min(budget, MAX_OPS_AT_ONCE); left > 0; left--) {
      if (!(await this.#runOne())) return;
      if (left === 1 && budget > MAX_OPS_AT_ONCE) throw new Error("It never comes to rest.");
    }
  }

  /** Lets time pass, and happen what happens meanwhile. Stops early where `until` says so. */
  async advance(ms: number, until: () => boolean = () => false): Promise<void> {
    const target = this.now + ms;
    await this.run(Infinity);
    while (!until()) {
      const next = this.nextAt();
      if (next === null || next > target) break;
      this.now = Math.max(this.now, next);
      await this.run(Infinity);
    }
    if (!until()) this.now = Math.max(this.now, target);
  }

  nextAt(): number | null {
    return this.#timed.length === 0 ? null : Math.min(...this.#timed.map(({ at }) => at));
  }

  /** Everything that the process which runs now can do without an answer. */
  async turn(): Promise<void> {
    await new Promise<void>((resolve) => nextTurn(resolve));
    this.current = null;
  }

  async #runOne(): Promise<boolean> {
    const due = this.#timed.filter(({ at }) => at <= this.now);
    const isTimed = due.length > 0 && (this.#ready.length === 0 || this.chance.next() < 0.5);
    if (isTimed) {
      const timed = due.length === 1 ? due[0]! : this.chance.pick(due);
      this.cancel(timed);
      this.current = timed.owner;
      this.log(`! ${timed.label}`);
      await timed.fire();
      await this.turn();
      return true;
    }
    if (this.#ready.length === 0) return false;
    const isInOrder = this.#ready.length === 1 || this.chance.next() < 0.6;
    const index = isInOrder ? 0 : this.chance.int(0, this.#ready.length - 1);
    const [op] = this.#ready.splice(index, 1);
    await this.#perform(op!);
    return true;
  }

  async #perform(op: Op): Promise<void> {
    this.ops++;
    const { owner, kind } = op;
    if (kind === "answer") {
      this.current = owner;
      op.run(() => {});
      return this.turn();
    }
    if (this.chance.next() < 0.2) this.now++;
    const fate = this.#fateOf(kind, owner);
    this.log(`${fate === "done" ? "" : `${fate}: `}${op.label} (for ${owner.name})`);
    const answer = (outcome: Outcome<unknown>) => this.#answer(op, outcome);
    switch (fate) {
      case "done":
        // Most answers are there before anything else happens.
        this.current = owner;
        await op.run(STORES.has(kind) && this.chance.next() < 0.6 ? op.settle : answer);
        break;
      case "refused":
        this.current = owner;
        op.settle({ error: AWAY });
        break;
      case "answer lost":
        await op.run(() => answer({ error: AWAY }));
        break;
      case "late":
        this.#later(STORES.has(kind) ? null : owner, op, () => op.run(answer));
        break;
      case "answer late":
        await op.run((outcome) => this.#later(owner, op, () => op.settle(outcome)));
        break;
      case "answer past its lease":
        await op.run((outcome) => {
          this.at(this.now + this.chance.int(32_000, 90_000), owner, `very late ${op.label}`, () => op.settle(outcome));
        });
        break;
      case "crash before":
        this.kill(owner);
        break;
      case "crash after":
        await op.run(() => {});
        this.kill(owner);
        break;
    }
    await this.turn();
  }

  #later(owner: Isolate | null, { label }: Op, what: () => void | Promise<void>): void {
    this.at(this.now + this.weather.delayMs(this.chance), owner, `late ${label}`, what);
  }

  #fateOf(kind: OpKind, owner: Isolate) {
    const store = STORES.has(kind) ? (kind as "d1" | "r2" | "queue") : null;
    if (store && this.now < this.away[store]) return this.chance.next() < 0.85 ? "refused" : "answer lost";
    return this.weather.fateOf(kind, this.chance, owner);
  }
}
