/** The relay's OpenAPI document, as far as the tests read it. */
export interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, any>>;
}

export interface Operation {
  operationId: string;
  security: Record<string, string[]>[];
  parameters?: (Parameter | Reference)[];
  requestBody?: { content: Record<string, { schema?: any; example?: unknown }> };
  responses: Record<string, ResponseObject | Reference>;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  schema: any;
  example?: string;
}

interface ResponseObject {
  content?: Record<string, { schema?: any }>;
  "x-codes"?: string[];
}

interface Reference {
  $ref: string;
}

export function resolveRef<T extends object>(document: Document, given: T | Reference): T {
  if (!("$ref" in given)) return given;
  const [, , kind, name] = given.$ref.split("/");
  return document.components[kind!]![name!];
}

/** The operation behind a method and path, and where it stands in the document; or the methods there are instead. */
export function findOperation(
  { paths }: Document,
  method: string,
  path: string,
): { operation: Operation; pointer: string } | { allow: string[] } {
  const matching = Object.keys(paths).filter((template) => matches(template, path));
  // `/v1/events/raw` is itself rather than an event.
  const exact = matching.toSorted((a, b) => a.split("{").length - b.split("{").length);
  const key = (method === "HEAD" ? "GET" : method).toLowerCase();
  for (const template of exact) {
    const operation = paths[template]![key];
    if (operation) return { operation, pointer: `#/paths/${template.replaceAll("/", "~1")}/${key}` };
  }
  const methods = matching.flatMap((template) => Object.keys(paths[template]!)).map((method) => method.toUpperCase());
  return { allow: [...new Set(methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : method)))] };
}

function matches(template: string, path: string): boolean {
  const [wanted, given] = [template.split("/"), path.split("/")];
  return (
    wanted.length === given.length &&
    wanted.every((part, i) => (part.startsWith("{") ? given[i] !== "" : part === given[i]))
  );
}
