import { createExecutionContext, createMessageBatch, getQueueResult } from "cloudflare:test";
import { env as realEnv } from "cloudflare:workers";
import { vi } from "vitest";
import worker from "../../../../src/index.ts";
import { operatorToken } from "../../support/api.ts";
import { faultyEnv } from "./bindings.ts";
import { createCalls, type Owner, type Strike } from "./calls.ts";
import { createObjects } from "./objects.ts";
import { createReceiver, type Request as Received } from "./receiver.ts";

export interface WorldOptions {
  strikes?: Strike[];
  /** Settings other than those of the tests. */
  settings?: Record<string, string>;
}

export type World = ReturnType<typeof createWorld>;

export const ledger = (realEnv as unknown as { FAULTS: D1Database }).FAULTS;
const CRON_MS = 60_000;
const CLIENT_TIMEOUT_MS = 60_000;
const REDELIVERY_MS = 5_000;
const LATE_MESSAGE_MS = 5 * 60_000;
const MAX_RETRIES: Record<string, number> = { "hooklane-outcomes": 100 };

/**
 * A relay over the real ledger and the real bucket, whose clock stands still while anything is under way and jumps to the
 * next moment at which something is due when nothing is. Queues and alarms are the test's: what they hand out is
 * taken by the Worker's own handlers.
 */
export function createWorld({ strikes = [], settings = {} }: WorldOptions = {}) {
  const calls = createCalls(strikes);
  const log: string[] = [];
  const waiting = { messages: 0 };
  const receiver = createReceiver(calls, ledger);
  const bindings = { ...(realEnv as unknown as Record<string, unknown>), ...settings } as unknown as Env;

  const createOwner = (name: string): Owner => ({
    name,
    isDead: false,
    die() {
      this.isDead = true;
    },
  });
  const compose = (owner: Owner) => ({
    env: faultyEnv(bindings, calls, owner, { sendMessage, object: (name) => objects.object(name) }),
    waitUntil: (work: Promise<unknown>) =>
      void work.catch((error: unknown) => void log.push(`uncaught: ${String(error)}`)),
    exports: {
      Sender: {
        send: async (request: any) => {
          const received: { one: Received | null } = { one: null };
          const answer = await calls.run(owner, "Sender send", "request", () => receiver.take(request, received));
          if (received.one) received.one.isKnown = true;
          return answer;
        },
      },
    },
  });
  const objects = createObjects(calls, createOwner, compose);
  const contextOf = ({ waitUntil, exports }: ReturnType<typeof compose>) =>
    ({ waitUntil, exports, passThroughOnException() {}, props: {} }) as unknown as ExecutionContext;

  function sendMessage(queue: string, body: unknown, delaySeconds: number, attempts = 1): void {
    const fault = calls.event(`message to ${queue}`);
    if (fault === "is lost") return;
    const delayMs = fault === "comes early" ? 0 : delaySeconds * 1_000 + (fault === "comes late" ? LATE_MESSAGE_MS : 0);
    if (fault !== "comes late") waiting.messages++;
    setTimeout(
      () => {
        if (fault !== "comes late") waiting.messages--;
        if (calls.state.isOver) return;
        if (fault === "comes twice") void consume(queue, body, attempts);
        void consume(queue, body, attempts);
      },
      Math.max(10, delayMs),
    );
  }

  async function consume(queue: string, body: unknown, attempts: number): Promise<void> {
    const owner = createOwner("consumer");
    const composed = compose(owner);
    const again = (delaySeconds: number) => {
      if (attempts <= (MAX_RETRIES[queue] ?? 10)) return sendMessage(queue, body, delaySeconds, attempts + 1);
      if (!queue.endsWith("-dead")) sendMessage(`${queue}-dead`, body, 0);
    };
    owner.die = () => {
      owner.isDead = true;
      again(REDELIVERY_MS / 1_000);
    };
    const batch = createMessageBatch(queue, [{ id: "m", timestamp: new Date(), attempts, body }]);
    try {
      await worker.queue(batch as MessageBatch, composed.env, contextOf(composed));
    } catch (error) {
      log.push(`queue: ${String(error)}`);
      return again(1);
    }
    const { retryMessages } = await calls.track(() => getQueueResult(batch, createExecutionContext()));
    for (const { delaySeconds } of retryMessages as { delaySeconds?: number }[]) again(delaySeconds ?? 0);
  }

  /** One request of a client that waits for a minute; status 0 when there was no answer. */
  async function fetch(method: string, path: string, body?: unknown, token = operatorToken, headers = {}) {
    const owner = createOwner("request");
    const composed = compose(owner);
    const isText = typeof body === "string";
    const request = new Request(`http://relay.test${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
    });
    const answer = Promise.resolve(worker.fetch(request, composed.env, contextOf(composed))).then(async (response) => {
      const text = await response.text();
      return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
    });
    answer.catch(() => {});
    let timer = 0;
    const timeout = new Promise<{ status: number; body: any }>((resolve) => {
      timer = setTimeout(() => resolve({ status: 0, body: null }), CLIENT_TIMEOUT_MS) as unknown as number;
    });
    const result = await Promise.race([answer, timeout]).finally(() => clearTimeout(timer));
    log.push(`${method} ${path}: ${result.status} ${JSON.stringify(result.body)?.slice(0, 300)}`);
    return result;
  }

  const cron = () => {
    if (calls.state.isOver) return;
    const composed = compose(createOwner("cron"));
    void Promise.resolve(worker.scheduled({} as ScheduledController, composed.env)).catch(() => {});
    setTimeout(cron, CRON_MS);
  };

  /** Until nothing is under way but what waits for the clock. */
  async function settle(): Promise<void> {
    const { state } = calls;
    for (let quiet = 0; quiet < 1;) {
      const before = state.activity;
      await turn();
      quiet = state.active === 0 && state.activity === before ? quiet + 1 : 0;
    }
  }

  /** Lets everything happen, moment by moment, until `isDone`; false when that is not within `limitMs`. */
  async function goOn(isDone: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
    const passed = () => Date.now() - calls.state.jumpedMs;
    const until = passed() + limitMs;
    for (;;) {
      await settle();
      if (await isDone()) return true;
      if (passed() >= until) return false;
      vi.advanceTimersToNextTimer();
    }
  }

  return {
    calls,
    log,
    receiver,
    waiting,
    fetch,
    startCron: () => void setTimeout(cron, CRON_MS),
    goOn,
    /** Waits by the relay's clock; does not move it. */
    sleep: (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms)),
    /** Lets work go on by itself until it is done. */
    async finish<T>(work: Promise<T>, limitMs = 3_600_000): Promise<T> {
      let isDone = false;
      work.then(
        () => (isDone = true),
        () => (isDone = true),
      );
      if (!(await goOn(() => isDone, limitMs))) throw new Error("It did not end.");
      return work;
    },
    /** Nothing of this world is under way any more. */
    async end(): Promise<void> {
      calls.end();
      for (let n = 0; n < 200 && vi.getTimerCount() > 0; n++) {
        await settle();
        vi.advanceTimersToNextTimer();
      }
      await settle();
      vi.clearAllTimers();
    },
  };
}

const { setImmediate: nextTurn } = globalThis as unknown as { setImmediate(run: () => void): void };
const turn = () => new Promise<void>((resolve) => nextTurn(resolve));
