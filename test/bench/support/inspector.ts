/** The Chrome DevTools protocol, as far as a profile needs it. */
export interface Inspector {
  send(method: string, params?: object): Promise<Record<string, unknown>>;
  /** The text of the first script whose URL is like this. */
  readScript(url: RegExp): Promise<string>;
  close(): void;
}

/** To every isolate behind an inspector port of Miniflare, by name: the Worker, and those that stand for D1, R2 and queues. */
export async function connectInspectors(port: number): Promise<Map<string, Inspector>> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as Target[];
  const inspectors = new Map<string, Inspector>();
  for (const { title, webSocketDebuggerUrl } of targets) {
    inspectors.set(title.replace(/^workerd: worker /, ""), await connect(webSocketDebuggerUrl));
  }
  return inspectors;
}

interface Target {
  title: string;
  webSocketDebuggerUrl: string;
}

async function connect(url: string): Promise<Inspector> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, { resolve(value: any): void; reject(error: Error): void }>();
  const scripts: { scriptId: string; url: string }[] = [];
  let sent = 0;
  socket.addEventListener("message", ({ data }) => {
    const { id, result, error, method, params } = JSON.parse(String(data));
    if (method === "Debugger.scriptParsed") scripts.push(params);
    const asker = waiting.get(id);
    if (!asker) return;
    waiting.delete(id);
    if (error) asker.reject(new Error(error.message));
    else asker.resolve(result);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error(`No inspector at ${url}`)));
  });

  function send(method: string, params: object = {}): Promise<any> {
    const id = ++sent;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }
  return {
    send,
    async readScript(url) {
      await send("Debugger.enable");
      const script = scripts.find((some) => url.test(some.url));
      if (!script) throw new Error(`No script ${url} among ${scripts.map((some) => some.url).join(", ")}`);
      return (await send("Debugger.getScriptSource", { scriptId: script.scriptId })).scriptSource;
    },
    close: () => socket.close(),
  };
}
