import { env, exports } from "cloudflare:workers";

export interface Answer {
  status: number;
  /** Parsed JSON, null when there is none. */
  body: any;
  headers: Headers;
}

/** Calls of the running Worker with one token. */
export interface Api {
  get(path: string): Promise<Answer>;
  post(path: string, body?: unknown): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  request(path: string, init: RequestInit): Promise<Answer>;
}

export interface TestTenant {
  id: string;
  shard: string;
  /** The tenant's admin key. */
  adminKey: string;
  api: Api;
  readKey(): Promise<string>;
  publishKey(sourceId: string): Promise<string>;
}

export const operatorToken = (env as unknown as { OPERATOR_TOKEN: string }).OPERATOR_TOKEN;

export function createApi(token: string | null, headers: Record<string, string> = {}): Api {
  async function request(path: string, init: RequestInit): Promise<Answer> {
    const sent = new Headers(init.headers);
    if (token !== null) sent.set("Authorization", `Bearer ${token}`);
    for (const [name, value] of Object.entries(headers)) sent.set(name, value);
    const response = await exports.default.fetch(new Request(`http://relay.test${path}`, { ...init, headers: sent }));
    const text = await response.text();
    const isJson = response.headers.get("Content-Type")?.includes("json") ?? false;
    return { status: response.status, body: isJson ? JSON.parse(text) : null, headers: response.headers };
  }
  const withBody = (method: string) => (path: string, body?: unknown) =>
    request(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
  return {
    request,
    get: (path) => request(path, { method: "GET" }),
    delete: (path) => request(path, { method: "DELETE" }),
    post: withBody("POST"),
    patch: withBody("PATCH"),
  };
}

const operator = createApi(operatorToken);

/** A tenant of its own for each test: tests of a file share their storage. */
export async function createTestTenant(): Promise<TestTenant> {
  const tenant = await operator.post("/v1/tenants", { name: "test" });
  const adminKey = await createKey(operator, { scope: "admin", tenant_id: tenant.body.id });
  const admin = createApi(adminKey);
  return {
    id: tenant.body.id,
    shard: adminKey.split("_")[1]!,
    adminKey,
    api: admin,
    readKey: () => createKey(admin, { scope: "read" }),
    publishKey: (sourceId) => createKey(admin, { scope: "publish", source_id: sourceId }),
  };
}

async function createKey(caller: Api, body: object): Promise<string> {
  const created = await caller.post("/v1/api-keys", body);
  if (created.status !== 201) throw new Error(`No key: ${JSON.stringify(created.body)}`);
  return created.body.key;
}
