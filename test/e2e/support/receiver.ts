import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { PATIENCE_MS } from "./eventually.ts";

export interface Received {
  /** Number of this request at this receiver, from 1. */
  n: number;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Milliseconds since 1970, when the whole request had arrived. */
  at: number;
}

/** Answers one request; what it does to the response is what the relay sees. */
export type Handler = (request: Received, response: ServerResponse, raw: IncomingMessage) => void | Promise<void>;

export interface Receiver {
  /** `http://127.0.0.1:PORT`; any path works. */
  url: string;
  received: Received[];
  /** Replaces what it does from the next request on. */
  handle(handler: Handler): void;
  /** Resolves once `count` requests have arrived in all; rejects after the time given. */
  waitFor(count: number, timeoutMs?: number): Promise<Received[]>;
  close(): Promise<void>;
}

/** A consumer: a real HTTP server that keeps every request it got. Answers 200 `ok` unless told otherwise. */
export async function startReceiver(handler: Handler = (_, response) => void response.end("ok")): Promise<Receiver> {
  const received: Received[] = [];
  const waiters = new Set<() => void>();
  const sockets = new Set<Socket>();
  let handle = handler;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => {});
    request.on("end", async () => {
      const entry: Received = {
        n: received.length + 1,
        path: request.url!,
        headers: request.headers,
        body: Buffer.concat(chunks),
        at: Date.now(),
      };
      received.push(entry);
      for (const waiter of waiters) waiter();
      await handle(entry, response, request);
    });
  });
  // One that hung up after five idle seconds would now and then do so just as a slow relay sends its next request.
  server.keepAliveTimeout = 0;
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    handle: (next) => void (handle = next),
    waitFor(count, timeoutMs = PATIENCE_MS) {
      return new Promise((resolve, reject) => {
        const check = () => {
          if (received.length < count) return;
          done();
          resolve(received);
        };
        const timer = setTimeout(() => {
          done();
          reject(new Error(`${received.length} of ${count} requests arrived within ${timeoutMs} ms`));
        }, timeoutMs);
        const done = () => {
          clearTimeout(timer);
          waiters.delete(check);
        };
        waiters.add(check);
        check();
      });
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Runs a test against a receiver of its own, which is closed whatever comes of it. */
export async function withReceiver<T>(use: (receiver: Receiver) => Promise<T>): Promise<T> {
  const receiver = await startReceiver();
  try {
    return await use(receiver);
  } finally {
    await receiver.close();
  }
}
