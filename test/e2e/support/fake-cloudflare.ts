import { createServer, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import type { AddressInfo } from "node:net";

/** An account as far as a deployment sees it. Everything in it is by name. */
export interface FakeAccount {
  databases: Map<string, { uuid: string; location: string | null; db: DatabaseSync }>;
  queues: Set<string>;
  buckets: Map<string, { rules: any[] }>;
  workers: Map<string, { secrets: Map<string, string>; bindings: any[]; uploads: number }>;
}

export interface FakeCloudflare {
  url: string;
  account: FakeAccount;
  /** What was asked, as `METHOD /path` below the account, in order. */
  asked: string[];
  /** Answers a fault instead, while it gives one. */
  fault: ((asked: string) => { status: number; code: number; message: string } | null) | null;
  close(): Promise<void>;
}

type Answer = { status?: number; result?: unknown; errors?: { code: number; message: string }[] };
const missing = (code: number, message: string): Answer => ({ status: 404, errors: [{ code, message }] });

/** The part of Cloudflare's API that `wrangler` uses to deploy this repository, over an account in memory. */
export async function startFakeCloudflare(): Promise<FakeCloudflare> {
  const account: FakeAccount = { databases: new Map(), queues: new Set(), buckets: new Map(), workers: new Map() };
  const asked: string[] = [];
  const fake: FakeCloudflare = {
    url: "",
    account,
    asked,
    fault: null,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url!, "http://fake");
    const path = url.pathname.replace(/^\/client\/v4/, "").replace(/^\/accounts\/[^/]+/, "");
    asked.push(`${request.method} ${path}`);
    const body = await readBody(request);
    const fault = fake.fault?.(`${request.method} ${path}`);
    const answer: Answer = fault
      ? { status: fault.status, errors: [{ code: fault.code, message: fault.message }] }
      : answerTo(account, request.method!, path, url.searchParams, body);
    response.writeHead(answer.status ?? 200, { "Content-Type": "application/json" });
    const errors = answer.errors ?? [];
    const list = Array.isArray(answer.result) ? answer.result : [];
    const result_info = { page: 1, per_page: 100, count: list.length, total_count: list.length, total_pages: 1 };
    response.end(
      JSON.stringify({
        success: errors.length === 0,
        errors,
        messages: [],
        result: answer.result ?? null,
        result_info,
      }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/client/v4`;
  return fake;
}

function answerTo(account: FakeAccount, method: string, path: string, query: URLSearchParams, body: Buffer): Answer {
  const json = () => JSON.parse(body.toString() || "{}");
  const [noun, ...rest] = path.slice(1).split("/").map(decodeURIComponent);
  if (noun === "d1") return answerD1(account, method, rest.slice(1), json);
  if (noun === "queues") return answerQueues(account, method, rest, query, json);
  if (noun === "r2") return answerR2(account, method, rest.slice(1), json);
  if (noun === "workers") return answerWorkers(account, method, rest, body);
  return unknown(method, path);
}

function unknown(method: string, path: string): Answer {
  return missing(7003, `${method} ${path} is not in this fake`);
}

function answerD1(account: FakeAccount, method: string, [key, action]: string[], json: () => any): Answer {
  const all = [...account.databases].map(([name, database]) => ({ name, ...database }));
  if (key === undefined && method === "GET") return { result: all.map(({ name, uuid }) => ({ name, uuid })) };
  if (key === undefined) {
    const { name, primary_location_hint: location = null } = json();
    const uuid = `00000000-0000-4000-8000-${String(account.databases.size).padStart(12, "0")}`;
    account.databases.set(name, { uuid, location, db: new DatabaseSync(":memory:") });
    return { result: { name, uuid } };
  }
  const database = all.find(({ name, uuid }) => key === name || key === uuid);
  if (!database) return missing(7404, "The database could not be found");
  if (action === undefined) return { result: { name: database.name, uuid: database.uuid } };
  const { sql } = json();
  // Several statements at once are the files of migrations; a single one may ask for rows.
  const isQuestion = /^\s*select\b/i.test(sql);
  const results = isQuestion ? database.db.prepare(sql).all() : database.db.exec(sql);
  return { result: [{ results: results ?? [], success: true, meta: { duration: 1 } }] };
}

function answerQueues(
  account: FakeAccount,
  method: string,
  [id, part]: string[],
  query: URLSearchParams,
  json: () => any,
): Answer {
  const describe = (name: string) => ({
    queue_id: `id-${name}`,
    queue_name: name,
    created_on: "2026-11-01",
    modified_on: "2026-11-01",
    producers: [],
    producers_total_count: 0,
    consumers: [],
    consumers_total_count: 0,
    settings: {},
  });
  if (id === undefined && method === "GET") {
    const names = query.getAll("name");
    return { result: [...account.queues].filter((name) => names.length === 0 || names.includes(name)).map(describe) };
  }
  if (id === undefined) {
    account.queues.add(json().queue_name);
    return { result: describe(json().queue_name) };
  }
  if (part === "consumers") return { result: method === "GET" ? [] : {} };
  return unknown(method, `/queues/${id}/${part}`);
}

function answerR2(account: FakeAccount, method: string, [name, part]: string[], json: () => any): Answer {
  if (name === undefined && method === "GET") {
    return { result: { buckets: [...account.buckets.keys()].map((bucket) => ({ name: bucket })) } };
  }
  if (name === undefined) {
    account.buckets.set(json().name, { rules: [] });
    return { result: {} };
  }
  const bucket = account.buckets.get(name);
  if (!bucket) return missing(10006, "The specified bucket does not exist.");
  if (part === undefined) return { result: { name } };
  if (method === "PUT") bucket.rules = json().rules;
  return { result: { rules: bucket.rules } };
}

function answerWorkers(account: FakeAccount, method: string, [kind, name, part]: string[], body: Buffer): Answer {
  if (kind === "subdomain") return { result: { subdomain: "acme" } };
  const worker = account.workers.get(name ?? "");
  const isUpload = kind === "scripts" && part === undefined && method === "PUT";
  if (!worker && !isUpload) return missing(10007, "This Worker does not exist on your account.");
  if (isUpload) {
    const metadata = JSON.parse(/name="metadata"[^{]*(\{.*\})\r\n/.exec(body.toString("latin1"))?.[1] ?? "{}");
    const known = worker ?? { secrets: new Map<string, string>(), bindings: [], uploads: 0 };
    known.bindings = metadata.bindings;
    for (const binding of metadata.bindings) {
      if (binding.type === "secret_text") known.secrets.set(binding.name, binding.text);
    }
    known.uploads++;
    account.workers.set(name!, known);
    return { result: { id: name, etag: "e", pipeline_hash: "p", mutable_pipeline_id: "m", deployment_id: "d" } };
  }
  if (part === "secrets") {
    return { result: [...worker!.secrets.keys()].map((secret) => ({ name: secret, type: "secret_text" })) };
  }
  if (kind === "workers")
    return { result: { id: name, name, subdomain: { enabled: true, previews_enabled: true }, references: {} } };
  if (part === "deployments") return { result: { deployments: [] } };
  if (part === "settings") return { result: { bindings: worker!.bindings } };
  if (kind === "services")
    return {
      result: { id: name, default_environment: { script: { tag: "t", tags: [], last_deployed_from: "wrangler" } } },
    };
  if (part === "subdomain") return { result: { enabled: true, previews_enabled: true } };
  if (part === "schedules") return { result: { schedules: [] } };
  return unknown(method, `/workers/${kind}/${name}/${part}`);
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
