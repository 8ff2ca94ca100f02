import { fetchApi } from "./conformance.ts";
import { eventually } from "./eventually.ts";
import { OPERATOR_TOKEN } from "./relay-process.ts";

export { eventually };

export interface Answer {
  status: number;
  /** Parsed JSON where the answer is JSON, else its text. */
  body: any;
  headers: Headers;
}

/** A caller of the API with one token. A body that is neither text nor bytes goes as JSON. */
export interface Client {
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

export function createClient(url: string, token: string | null): Client {
  const call: Client["call"] = async (method, path, body, headers = {}) => {
    const isRaw = typeof body === "string" || body instanceof Uint8Array;
    const response = await fetchApi(url + path, {
      method,
      headers: {
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? (body as BodyInit) : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = text !== "" && /[/+]json/.test(response.headers.get("Content-Type") ?? "");
    return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers };
  };
  return { call, get: (path) => call("GET", path), post: (path, body, headers) => call("POST", path, body, headers) };
}

export interface TestTenant {
  id: string;
  /** With the tenant's admin key. */
  admin: Client;
  adminKey: string;
  sourceId: string;
}

/** A tenant with an admin key and a source named `orders`. */
export async function createTenant(url: string, operatorToken = OPERATOR_TOKEN): Promise<TestTenant> {
  const operator = createClient(url, operatorToken);
  const tenant = await expectStatus(201, operator.post("/v1/tenants", { name: "e2e" }));
  const key = await expectStatus(201, operator.post("/v1/api-keys", { scope: "admin", tenant_id: tenant.id }));
  const admin = createClient(url, key.key);
  const source = await expectStatus(201, admin.post("/v1/sources", { name: "orders" }));
  return { id: tenant.id, admin, adminKey: key.key, sourceId: source.id };
}

export interface TestEndpoint {
  id: string;
  secret: string;
  subscriptionId: string;
}

/** An endpoint with one subscription, to everything unless said otherwise. */
export async function createEndpoint(
  { admin }: TestTenant,
  settings: { url: string } & Record<string, unknown>,
  pattern = "*",
): Promise<TestEndpoint> {
  const endpoint = await expectStatus(201, admin.post("/v1/endpoints", settings));
  const subscription = await expectStatus(
    201,
    admin.post("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: pattern }),
  );
  return { id: endpoint.id, secret: endpoint.secret, subscriptionId: subscription.id };
}

/** The body of an answer that has this status; anything else fails the test with what was answered. */
export async function expectStatus(status: number, answer: Promise<Answer>): Promise<any> {
  const { status: got, body } = await answer;
  if (got !== status) throw new Error(`Expected ${status}, got ${got}: ${JSON.stringify(body)}`);
  return body;
}

/** The delivery once it is terminal, attempts included. */
export function terminalDelivery({ admin }: TestTenant, id: string, timeoutMs?: number): Promise<any> {
  return eventually(async () => {
    const { body } = await admin.get(`/v1/deliveries/${id}`);
    return body.terminal_at ? body : null;
  }, timeoutMs);
}

/** Publishes one event from the source `orders`; gives back the body of the 202. */
export function publish({ admin }: TestTenant, event: Record<string, unknown> = {}): Promise<any> {
  const defaults = { type: "order.created", source: "orders", payload: { id: 1 } };
  return expectStatus(202, admin.post("/v1/events", { ...defaults, ...event }));
}

/** Every row of a list, page by page; `path` may carry a query. */
export async function listAll({ admin }: TestTenant, path: string, limit = 250): Promise<any[]> {
  const rows: any[] = [];
  let cursor: string | null = null;
  do {
    const query: string = `${path.includes("?") ? "&" : "?"}limit=${limit}${cursor === null ? "" : `&cursor=${cursor}`}`;
    const page = await expectStatus(200, admin.get(path + query));
    rows.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return rows;
}

/** The delivery once it satisfies `accept`, attempts included. */
export function deliveryWhen(
  { admin }: TestTenant,
  id: string,
  accept: (delivery: any) => boolean,
  timeoutMs?: number,
): Promise<any> {
  return eventually(async () => {
    const { body } = await admin.get(`/v1/deliveries/${id}`);
    return accept(body) ? body : null;
  }, timeoutMs);
}
