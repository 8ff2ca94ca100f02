/** Makes one call with a token and gives back the answer's JSON. Whatever is no success ends the script, saying what came. */
export type ApiCaller = (method: "GET" | "POST" | "PATCH", path: string, body?: unknown) => Promise<any>;

export function createApiCaller(url: string, token: string): ApiCaller {
  return async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return JSON.parse(text);
  };
}

export interface Playground {
  tenantId: string;
  /** The text of an admin key. */
  key: string;
  /** Calls with that key. */
  call: ApiCaller;
}

/** A tenant of its own with an admin key and a source named `orders`: what has to be there before anything is published. */
export async function createPlayground(url: string, operatorToken: string, name: string): Promise<Playground> {
  const operator = createApiCaller(url, operatorToken);
  const tenant = await operator("POST", "/v1/tenants", { name });
  const { key } = await operator("POST", "/v1/api-keys", { scope: "admin", tenant_id: tenant.id });
  const call = createApiCaller(url, key);
  await call("POST", "/v1/sources", { name: "orders" });
  return { tenantId: tenant.id, key, call };
}
