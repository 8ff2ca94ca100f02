import { openApiDocument } from "../../../src/http/openapi/document.ts";
import type { Answer, Client } from "./client.ts";
import { resolveRef, type Document, type Operation, type Parameter } from "./document.ts";

export const DOCUMENT = openApiDocument() as unknown as Document;

/** Whose id a field or parameter of that name holds. A new one must be added here: the walk fails until it is. */
const NOUN_OF_FIELD: Record<string, string> = {
  tenant_id: "tenants",
  source_id: "sources",
  source: "sources",
  endpoint_id: "endpoints",
  subscription_id: "subscriptions",
  to_subscription_id: "subscriptions",
  event_id: "events",
  delivery_id: "deliveries",
};
/** Ids that name nothing the tenant must have: a producer may name any event as the cause, and a worker is the relay's. */
const FREE_IDS = ["cause_event_id", "worker_id"];
/** The source of an event that is made up is a name, and nobody's. */
const FREE_PATHS = ["event.source"];

/** A place for an id in a request. */
export interface IdField {
  name: string;
  noun: string;
  /** The way to it in a JSON body, `[]` for the first of a list. */
  path: string[];
}

/** One operation, ready to be called. */
export interface Step {
  name: string;
  method: string;
  path: string;
  /** As in the path, `sources` in `/v1/sources/{id}`. */
  noun: string;
  /** The scopes of keys that may call; none when only the operator may. */
  scopes: string[];
  query: IdField[];
  body: IdField[];
  /** Calls it with these ids by noun, or with another in one place. */
  call(client: Client, ids: Ids, other?: { field: IdField; id: string }, headers?: Headers): Promise<Answer>;
}

export type Ids = Record<string, string>;
type Headers = Record<string, string>;

// `/metrics` is no tenant's, and a route only where a relay has a token for it: test/workerd/metrics/scrape.test.ts.
const paths = Object.entries(DOCUMENT.paths).filter(([path]) => path !== "/metrics");

/** All other operations that want a token. */
export const STEPS: Step[] = paths.flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { security }]) => security.length > 0)
    .map(([method, operation]) => createStep(method.toUpperCase(), path, operation)),
);

function createStep(method: string, path: string, operation: Operation): Step {
  const noun = path.split("/")[2]!;
  const parameters = (operation.parameters ?? []).map((given) => resolveRef<Parameter>(DOCUMENT, given));
  const inQuery = parameters.filter((parameter) => parameter.in === "query");
  const content = operation.requestBody?.content ?? {};
  const type = Object.keys(content)[0];
  const { schema, example } = content[type!] ?? {};
  const body = schema ? idFieldsOf(schema) : [];
  return {
    name: `${method} ${path}`,
    method,
    path,
    noun,
    scopes: operation.security.flatMap(({ apiKey }) => apiKey ?? []),
    query: inQuery.flatMap(({ name }) => asIdField(name, [name])),
    body,
    call(client, ids, other, headers = {}) {
      const query = new URLSearchParams();
      for (const { name, example } of inQuery) if (example !== undefined) query.set(name, example);
      if (other && other.field.path.length === 1 && !body.includes(other.field)) query.set(other.field.name, other.id);
      const sent = schema ? structuredClone(example) : example;
      for (const field of body) {
        // `source` of an example is a name, which is valid for every tenant.
        if (field === other?.field) put(sent, field.path, other.id);
        else if (has(sent, field.path) && field.name !== "source") put(sent, field.path, ids[field.noun]!);
      }
      const search = query.size > 0 ? `?${query}` : "";
      return client.call(method, path.replace(/\{\w+\}/, ids[noun]!) + search, sent, headers);
    },
  };
}

function idFieldsOf(given: any, path: string[] = []): IdField[] {
  const schema = resolveRef<any>(DOCUMENT, given);
  if (schema.items) return idFieldsOf(schema.items, [...path, "[]"]);
  const fields = Object.entries<any>(schema.properties ?? {});
  return fields.flatMap(([name, field]) => [
    ...asIdField(name, [...path, name]),
    ...idFieldsOf(field, [...path, name]),
  ]);
}

function asIdField(name: string, path: string[]): IdField[] {
  if ((!name.endsWith("_id") && name !== "source") || FREE_IDS.includes(name) || FREE_PATHS.includes(path.join(".")))
    return [];
  const noun = NOUN_OF_FIELD[name];
  if (noun === undefined) throw new Error(`Whose id is ${path.join(".")}? Say so in test/e2e/support/walk.ts.`);
  return [{ name, noun, path }];
}

function put(body: any, path: string[], value: string): void {
  parentOf(body, path)[path.at(-1)!] = value;
}

function has(body: any, path: string[]): boolean {
  return parentOf(body, path)?.[path.at(-1)!] !== undefined;
}

function parentOf(body: any, path: string[]): any {
  return path.slice(0, -1).reduce((value, key) => (key === "[]" ? value?.[0] : value?.[key]), body);
}

/** An id of the same form that is nobody's. */
export function ofNothing(id: string): string {
  return id.slice(0, -1) + (id.at(-1) === "0" ? "1" : "0");
}
