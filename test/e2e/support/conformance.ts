import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { findOperation, resolveRef, type Document } from "./document.ts";

/**
 * `fetch` for the relay's API, in every e2e test: an answer that the running relay's own OpenAPI document does not describe
 * fails the test, also where the test would have passed over it.
 */
export async function fetchApi(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init);
  const { origin, pathname } = new URL(url);
  const body = new Uint8Array(await response.clone().arrayBuffer());
  const method = init.method ?? "GET";
  const check = await checkOf(origin);
  const wrong = check({ method, path: pathname, response, text: new TextDecoder().decode(body) });
  if (wrong !== null) {
    const problem = `${method} ${pathname} was answered ${response.status}, against the OpenAPI document: ${wrong}`;
    violations.push(problem);
    throw new Error(problem);
  }
  return response;
}

const violations: string[] = [];

/** A test that catches what its calls throw, as those that kill the relay do, must not catch this. */
export function expectConformance(): void {
  const all = violations.splice(0);
  if (all.length > 0) throw new Error(all.join("\n"));
}

interface Seen {
  method: string;
  path: string;
  response: Response;
  text: string;
}

/** What is wrong with an answer; null for nothing. */
type Check = (seen: Seen) => string | null;

const checks = new Map<string, Check>();
const origins = new Map<string, Check>();

async function checkOf(origin: string): Promise<Check> {
  const known = origins.get(origin);
  if (known) return known;
  const response = await fetch(`${origin}/openapi.json`);
  if (response.status !== 200) throw new Error(`${origin}/openapi.json was answered ${response.status}.`);
  const text = await response.text();
  let check = checks.get(text);
  if (!check) checks.set(text, (check = createCheck(JSON.parse(text))));
  origins.set(origin, check);
  return check;
}

export function createCheck(document: Document): Check {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  // Stricter than RFC 3339: times of answers are in UTC with milliseconds.
  ajv.addFormat("date-time", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  ajv.addSchema(closed(document) as object, "document");
  const validators = new Map<string, ValidateFunction>();
  const validate = (ref: string, value: unknown): string | null => {
    let validator = validators.get(ref);
    if (!validator) validators.set(ref, (validator = ajv.compile({ $ref: `document${ref}` })));
    if (validator(value)) return null;
    const errors = validator.errors!.map(({ instancePath, message, params }) =>
      [instancePath, message, JSON.stringify(params)].join(" "),
    );
    return `${errors.join("; ")}: ${JSON.stringify(value)}`;
  };

  return ({ method, path, response, text }) => {
    const requestId = response.headers.get("X-Request-Id");
    if (!/^req_[0-9a-z]{16}$/.test(requestId ?? "")) return `X-Request-Id is ${requestId}`;
    const found = findOperation(document, method, path);
    const mediaType = response.headers.get("Content-Type")?.split(";")[0] ?? "";
    const isProblem = mediaType === "application/problem+json";
    if (response.status >= 400 && !isProblem) return `a refusal is ${mediaType || "of no type"}`;
    if (isProblem && method !== "HEAD") {
      const problem = JSON.parse(text);
      const wrong = validate("#/components/schemas/Problem", problem);
      if (wrong !== null) return wrong;
      if (problem.request_id !== requestId) return `request_id is not ${requestId}: ${text}`;
      if (problem.status !== response.status) return `status is not ${response.status}: ${text}`;
      if (problem.type !== `urn:hooklane:problem:${problem.code}`) return `type is not that of its code: ${text}`;
    }
    if (!("operation" in found)) {
      // No operation: the document knows the path by other methods, or not at all.
      const [status, code] = found.allow.length > 0 ? [405, "method_not_allowed"] : [404, "not_found"];
      if (response.status !== status) return `should be ${status}`;
      if (method !== "HEAD" && JSON.parse(text).code !== code) return `should be ${code}: ${text}`;
      const allow = response.headers.get("Allow")?.split(", ") ?? [];
      return allow.toSorted().join() === found.allow.toSorted().join() ? null : `Allow is ${allow.join()}`;
    }

    const { operation, pointer } = found;
    const given = operation.responses[String(response.status)];
    if (!given) return `status ${response.status} is not described: ${text}`;
    const described = resolveRef(document, given);
    const types = Object.keys(described.content ?? {});
    if (types.length === 0) return text === "" && mediaType === "" ? null : `has a body: ${text}`;
    const type = types.find((type) => type === mediaType || type === "*/*");
    if (type === undefined) return `content type ${mediaType} is not described`;
    if (method === "HEAD" || !described.content![type]!.schema) return null;
    const body = JSON.parse(text);
    const codes = described["x-codes"];
    if (codes && !codes.includes(body.code)) return `code ${body.code} is not described for it: ${text}`;
    const at = "$ref" in given ? given.$ref : `${pointer}/responses/${response.status}`;
    return validate(`${at}/content/${type.replaceAll("/", "~1")}/schema`, body);
  };
}

/** What is answered may grow, so the document leaves it open; but whatever the relay answers today it must describe. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpenObject = "type" in copy && "properties" in copy && !("additionalProperties" in copy);
  return isOpenObject ? { ...copy, additionalProperties: false } : copy;
}
