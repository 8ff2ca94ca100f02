import { VERSION } from "../../core/outbound.ts";
import { statusOf, titleOf, type ProblemCode } from "../problem.ts";
import { FIELDS } from "./fields.ts";
import { namedSchemas, schemaOf, type JsonSchema } from "./json-schema.ts";
import { problemsOf, type Access, type AnswerDeclaration, type Content, type Operation } from "./operation.ts";
import { OPERATIONS } from "./operations.ts";

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  description?: string;
  schema: JsonSchema;
}

interface Reference {
  $ref: string;
}

type MediaTypes = Record<string, { schema?: JsonSchema; example?: unknown }>;

export interface ResponseObject {
  description: string;
  headers?: Record<string, Reference | { description: string; schema: JsonSchema }>;
  content?: MediaTypes;
  /** The problem codes this status can come with. */
  "x-codes"?: ProblemCode[];
}

export interface OperationObject {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, string[]>[];
  parameters?: (Parameter | Reference)[];
  requestBody?: { required?: boolean; content: MediaTypes };
  responses: Record<string, ResponseObject | Reference>;
}

export interface OpenApiDocument {
  openapi: "3.1.1";
  info: Record<string, unknown>;
  servers: { url: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, OperationObject>>;
  components: {
    securitySchemes: Record<string, { type: string; description: string; [key: string]: string }>;
    parameters: Record<string, Parameter>;
    headers: Record<string, { description: string; schema: JsonSchema }>;
    schemas: Record<string, JsonSchema>;
    responses: Record<string, ResponseObject>;
  };
}

/** Which scopes of keys may call; the lists are what the document names under `security`. */
const SCOPES: Record<Exclude<Access, "anyone" | "metrics" | "operator">, string[]> = {
  publish: ["publish", "admin"],
  read: ["read", "admin"],
  admin: ["admin"],
};

const HEADERS = { "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" } };

/** As `http/rate-limit-headers` gives them. */
const RATE_LIMIT_HEADERS = {
  "Retry-After": "Seconds to wait.",
  RateLimit: "Which limit was reached and when it counts anew (draft-ietf-httpapi-ratelimit-headers).",
  "RateLimit-Policy": "All limits: `q` requests in `w` seconds.",
};

let built: OpenApiDocument | undefined;

/** The OpenAPI 3.1 document of this version. Built when it is first asked for, once an isolate. */
export function openApiDocument(): OpenApiDocument {
  return (built ??= build(OPERATIONS));
}

function build(operations: readonly Operation[]): OpenApiDocument {
  const responses: Record<string, ResponseObject> = {};
  const paths: OpenApiDocument["paths"] = {};
  for (const operation of operations) {
    (paths[operation.path] ??= {})[operation.method] = operationObject(operation, responses);
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Hooklane",
      version: VERSION,
      summary: "A webhook relay that runs in your own Cloudflare account",
      description:
        "Additive only: fields, values and routes are added, never removed or retyped, so pass over what you do not " +
        "know. Times are RFC 3339 in UTC with milliseconds. Unknown fields and query parameters of requests are refused.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          description: "An API key; the scopes that may call are listed with each operation.",
        },
        operatorToken: {
          type: "http",
          scheme: "bearer",
          description: "The relay's `OPERATOR_TOKEN`. It acts for the tenant that `X-Tenant-Id` names.",
        },
        metricsToken: {
          type: "http",
          scheme: "bearer",
          description: "The relay's `METRICS_TOKEN`, where it has one.",
        },
        sourceSignature: {
          type: "apiKey",
          in: "header",
          name: "webhook-signature",
          description:
            "Instead of a token: Standard Webhooks' `webhook-id`, `webhook-timestamp` and `webhook-signature`, made with " +
            "the signing key of the source whose id `X-Webhook-Source` gives.",
        },
      },
      parameters: {
        tenant: headerParameter("X-Tenant-Id"),
        idempotencyKey: headerParameter("Idempotency-Key"),
      },
      headers: {
        "X-Request-Id": { description: FIELDS["request_id"]!, schema: { type: "string" } },
      },
      schemas: { ...namedSchemas("input"), ...namedSchemas("output") },
      responses,
    },
  };
}

function operationObject(operation: Operation, responses: Record<string, ResponseObject>): OperationObject {
  const parameters = parametersOf(operation);
  const { body } = operation;
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description !== undefined && { description: operation.description }),
    security: securityOf(operation.access),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: needsBody(body), content: mediaTypes(body, "input") } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.answers).map(([status, answer]) => [status, responseObject(answer)]),
      ),
      ...problemResponses(operation, responses),
    },
  };
}

/** No body is `{}`: so it may be left out where `{}` is valid. */
function needsBody(body: Content[]): boolean {
  return body.some(({ schema }) => schema && !schema.safeParse({}).success);
}

function securityOf(access: Access): Record<string, string[]>[] {
  if (access === "anyone") return [];
  if (access === "metrics") return [{ metricsToken: [] }];
  if (access === "operator") return [{ operatorToken: [] }];
  const byToken: Record<string, string[]>[] = [{ apiKey: SCOPES[access] }, { operatorToken: [] }];
  return access === "publish" ? [...byToken, { sourceSignature: [] }] : byToken;
}

function parametersOf({ id, path, query, queryExample, access, takesIdempotencyKey }: Operation) {
  const parameters: (Parameter | Reference)[] = [];
  const key = /\{(\w+)\}/.exec(path)?.[1];
  if (key !== undefined) {
    const description = FIELDS[key === "name" ? "type" : key]!;
    parameters.push({ name: key, in: "path", required: true, description, schema: { type: "string" } });
  }
  if (access !== "anyone" && access !== "metrics" && access !== "operator")
    parameters.push({ $ref: "#/components/parameters/tenant" });
  if (takesIdempotencyKey) parameters.push({ $ref: "#/components/parameters/idempotencyKey" });
  if (!query) return parameters;
  const { properties = {}, required = [] } = schemaOf(query, "input", id);
  for (const [name, { description, ...schema }] of Object.entries(properties)) {
    const example = queryExample?.[name];
    parameters.push({
      name,
      in: "query",
      ...(required.includes(name) && { required: true }),
      ...(description !== undefined && { description }),
      schema: withoutNull(schema),
      ...(example !== undefined && { example }),
    });
  }
  return parameters;
}

/** A query parameter is there or not; it cannot be null. */
function withoutNull(schema: JsonSchema): JsonSchema {
  return Array.isArray(schema.type) ? { ...schema, type: schema.type.find((type) => type !== "null") } : schema;
}

function headerParameter(name: string): Parameter {
  return { name, in: "header", description: FIELDS[name]!, schema: { type: "string" } };
}

function responseObject({ description, content, headers }: AnswerDeclaration): ResponseObject {
  return {
    description,
    headers: { ...HEADERS, ...declareHeaders(headers ?? {}) },
    ...(content && { content: mediaTypes(content, "output") }),
  };
}

function declareHeaders(headers: Record<string, string>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: "string" } }]),
  );
}

function mediaTypes(contents: Content[], side: "input" | "output"): MediaTypes {
  return Object.fromEntries(
    contents.map(({ type, schema, example }) => [
      type,
      { ...(schema && { schema: schemaOf(schema, side) }), ...(example !== undefined && { example }) },
    ]),
  );
}

/** One response a status. Those with the same codes are one component. */
function problemResponses(operation: Operation, responses: Record<string, ResponseObject>): Record<string, Reference> {
  const byStatus = Map.groupBy(problemsOf(operation), statusOf);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const sorted = codes.toSorted();
      const name = `Problem${status}${sorted.map(pascalCase).join("")}`;
      responses[name] ??= {
        description: sorted.map((code) => `\`${code}\`: ${titleOf(code)}.`).join(" "),
        headers: { ...HEADERS, ...(status === 429 && declareHeaders(RATE_LIMIT_HEADERS)) },
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
        "x-codes": sorted,
      };
      return [String(status), { $ref: `#/components/responses/${name}` }];
    }),
  );
}

function pascalCase(code: string): string {
  return code.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
