import { fork } from "node:child_process";
import { once } from "node:events";

/**
 * A module of this folder as a process of its own, so that neither its work nor its pauses are in what another measures. Asked one
 * thing at a time or several; each is answered by what the module's `answerParent` gives back.
 */
export interface Child {
  ask<T>(what: string, argument?: unknown): Promise<T>;
  stop(): Promise<void>;
}

interface Question {
  number: number;
  what: string;
  argument: unknown;
}
interface Answer {
  number: number;
  value?: unknown;
  error?: string;
}

export function startChild(module: string): Child {
  const child = fork(module, { serialization: "advanced", stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = once(child, "exit");
  const waiting = new Map<number, { resolve(value: any): void; reject(error: Error): void }>();
  let asked = 0;
  child.on("message", (message) => {
    const { number, value, error } = message as Answer;
    const asker = waiting.get(number)!;
    waiting.delete(number);
    if (error === undefined) asker.resolve(value);
    else asker.reject(new Error(error));
  });
  child.on("exit", () => {
    for (const { reject } of waiting.values()) reject(new Error(`${module} ended.`));
    waiting.clear();
  });
  return {
    ask(what, argument) {
      const number = ++asked;
      child.send({ number, what, argument } satisfies Question);
      return new Promise((resolve, reject) => waiting.set(number, { resolve, reject }));
    },
    async stop() {
      // Its connection ends, and with it what keeps it alive.
      child.disconnect();
      await ended;
    },
  };
}

/** In the child: what it can be asked. It ends with its parent. */
export function answerParent(answers: Record<string, (argument: any) => unknown>): void {
  process.on("message", async ({ number, what, argument }: Question) => {
    let answer: Answer;
    try {
      answer = { number, value: await answers[what]!(argument) };
    } catch (error) {
      answer = { number, error: String((error as Error).stack) };
    }
    process.send!(answer);
  });
  process.on("disconnect", () => process.exit(0));
}

/** Milliseconds since 1970 with their fraction, on a clock that all processes of the machine share closely enough. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

export function cpuSecondsOfProcess(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000_000;
}
