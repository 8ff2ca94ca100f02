import { Validator } from "@seriousme/openapi-schema-validator";
import { assert, constantFrom, property, stringMatching, string, oneof } from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { EVENT_TYPE_REGEX, EventTypePattern } from "../../../src/app/field-schemas.ts";
import { isEventType, parseEventTypePattern } from "../../../src/core/event-type.ts";
import { openApiDocument } from "../../../src/http/openapi/document.ts";
import { FIELDS } from "../../../src/http/openapi/fields.ts";
import { OPERATIONS } from "../../../src/http/openapi/operations.ts";
import { ANSWERS, REQUESTS } from "../../../src/http/openapi/registries.ts";

const DOCUMENT = JSON.parse(JSON.stringify(openApiDocument()));

/** Every object in the document, with the key it stands under. */
function* walk(value: any, key = ""): Generator<[key: string, value: any]> {
  if (typeof value !== "object" || value === null) return;
  yield [key, value];
  for (const [name, inside] of Object.entries(value)) yield* walk(inside, name);
}

/** The routes that the app says it has. Loaded at run time: its types are the Worker's. */
async function routesOfApp(): Promise<string[]> {
  const module: string = new URL("../../../src/http/app.ts", import.meta.url).href;
  const { createApp } = await import(module);
  const routes: { method: string; path: string }[] = createApp({}).routes;
  const own = routes.filter(({ method }) => method !== "ALL");
  return own.map(({ method, path }) => `${method} ${path.replace(/(?<=.)\/$/, "").replaceAll(/:(\w+)/g, "{$1}")}`);
}

test("the document has the app's routes, all and no others", async () => {
  const described = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  expect(described.toSorted()).toEqual((await routesOfApp()).toSorted());
});

test("the document is valid OpenAPI 3.1", async () => {
  const validator = new Validator();
  expect(await validator.validate(structuredClone(DOCUMENT))).toMatchObject({ valid: true });
  expect(validator.version).toBe("3.1");
});

test("every operation has an id of its own, a summary, and a status for success", () => {
  expect(new Set(OPERATIONS.map(({ id }) => id)).size).toBe(OPERATIONS.length);
  for (const { id, summary, answers } of OPERATIONS) {
    expect(id).toMatch(/^[a-z][A-Za-z]+$/);
    expect(summary).toMatch(/^[A-Z].*[^.]$/);
    expect(Object.keys(answers).every((status) => status.startsWith("2"))).toBe(true);
  }
});

test("every field and parameter is explained, and nothing else", () => {
  const unexplained: string[] = [];
  const names = new Set<string>();
  for (const [key, value] of walk(DOCUMENT)) {
    if (value.in !== undefined) names.add(value.name);
    if (value.in !== undefined && !value.description) unexplained.push(value.name);
    for (const [name, field] of Object.entries<any>(value.properties ?? {})) {
      names.add(name);
      if (!field.description) unexplained.push(`${key}.${name}`);
    }
  }
  expect(unexplained).toEqual([]);
  const unused = Object.keys(FIELDS).filter((key) => !names.has(key.split(".").at(-1)!));
  expect(unused).toEqual([]);
  const schemas = DOCUMENT.components.schemas;
  for (const key of Object.keys(FIELDS).filter((key) => key.includes("."))) {
    const [owner, field] = key.split(".");
    const query = OPERATIONS.find(({ id }) => id === owner)?.query as { shape: Record<string, unknown> } | undefined;
    expect(query ? query.shape[field!] : schemas[owner!]?.properties[field!], key).toBeDefined();
  }
});

test("what has a name is used, and a name is a request's or an answer's", () => {
  const used = new Set([...walk(DOCUMENT)].map(([, { $ref }]) => $ref).filter(Boolean));
  for (const kind of ["schemas", "responses", "parameters", "headers"]) {
    for (const name of Object.keys(DOCUMENT.components[kind])) expect(used).toContain(`#/components/${kind}/${name}`);
  }
  const { schemas: requests } = z.toJSONSchema(REQUESTS, { io: "input" });
  const { schemas: answers } = z.toJSONSchema(ANSWERS, { io: "output" });
  expect(Object.keys(requests).filter((name) => name in answers)).toEqual([]);
});

test("every body that is shown as an example is one that its schema accepts", () => {
  for (const { id, method, body = [] } of OPERATIONS) {
    for (const { schema, example } of body) {
      expect(example, id).toBeDefined();
      if (schema) expect(schema.safeParse(example).error, id).toBeUndefined();
    }
    if (method === "post" || method === "patch") expect(body, id).not.toEqual([]);
  }
});

test("what is not built is in no request", () => {
  expect(JSON.stringify(DOCUMENT)).not.toContain("notBuilt");
});

test("requests are closed, answers may grow", () => {
  const { schemas } = DOCUMENT.components;
  for (const name of Object.keys(z.toJSONSchema(REQUESTS, { io: "input" }).schemas)) {
    expect(schemas[name].additionalProperties, name).toBe(false);
  }
  expect(schemas.Endpoint.additionalProperties).toBeUndefined();
});

test("the patterns that are shown for types and their patterns say what the rules say", () => {
  const { pattern } = z.toJSONSchema(EventTypePattern, { io: "input" });
  const accepts = (pattern: string, text: string) => text.length <= 128 && new RegExp(pattern, "u").test(text);
  const pieces = constantFrom("a", "B9", "_-", "*", ".", "..", "hooklane", "hooklane.", "é", " ", "\n", "x".repeat(64));
  const texts = oneof(
    string(),
    stringMatching(/^[a-z*.]{0,12}$/),
    pieces.chain((a) => pieces.chain((b) => pieces.map((c) => a + b + c))),
  );
  assert(
    property(texts, (text) => {
      expect(accepts(pattern!, text)).toBe(parseEventTypePattern(text).ok);
      expect(accepts(EVENT_TYPE_REGEX, text)).toBe(isEventType(text));
    }),
    { seed: 1, numRuns: 2_000 },
  );
});
