import {
  eventHeaders,
  outboundBody,
  signatureHeaders,
  sourceSignatureHeaders,
  type OutboundEvent,
} from "../../../../src/core/outbound.ts";
import type { OpenApiDocument, Parameter, ResponseObject } from "../../../../src/http/openapi/document.ts";
import type { JsonSchema } from "../../../../src/http/openapi/json-schema.ts";

/** Everything others rely on, one thing a line: what it is → its type and whether it is always there. */
export type Contract = Record<string, string>;

const OPTIONAL = ", optional";
const REQUIRED = ", required";

/** What would break somebody, and what is new and breaks nobody. */
export function compare(before: Contract, now: Contract): { breaking: string[]; additions: string[] } {
  const breaking: string[] = [];
  const additions: string[] = [];
  for (const [key, was] of Object.entries(before)) {
    const is = now[key];
    if (is === was) continue;
    if (is === undefined) breaking.push(`${key} is gone (${was})`);
    else if (isWidened(key, was, is)) additions.push(`${key} was ${was}, is ${is}`);
    else breaking.push(`${key} was ${was}, is ${is}`);
  }
  for (const [key, is] of Object.entries(now)) {
    if (key in before) continue;
    const isKnownRequest = key.startsWith("request ") && parentOf(key) in before;
    if (isKnownRequest && is.endsWith(REQUIRED)) breaking.push(`${key} is new and required`);
    else additions.push(`${key} is new (${is})`);
  }
  return { breaking, additions };
}

/** A request may ask for less, an answer may hold more. */
function isWidened(key: string, was: string, is: string): boolean {
  const [from, to] = key.startsWith("request ") ? [REQUIRED, OPTIONAL] : [OPTIONAL, REQUIRED];
  return was.endsWith(from) && is === was.slice(0, -from.length) + to;
}

function parentOf(key: string): string {
  return key.slice(0, Math.max(key.lastIndexOf("."), key.lastIndexOf(" ?")));
}

export function contractOf(document: OpenApiDocument): Contract {
  const contract: Contract = { ...envelopeContract(), ...headerContract() };
  const requests = new Set<string>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const name = `${method.toUpperCase()} ${path}`;
      contract[`request ${name}`] = operation.operationId;
      for (const [scheme, scopes] of operation.security.flatMap((one) => Object.entries(one))) {
        for (const scope of scopes.length > 0 ? scopes : [""])
          contract[`${name} by ${scheme} ${scope}`.trim()] = "may call";
      }
      for (const given of operation.parameters ?? []) {
        const { in: place, name: parameter, required, schema } = resolve<Parameter>(document, given);
        addField(contract, `request ${name} ?${place} ${parameter}`, schema, required ?? false);
      }
      for (const [type, { schema }] of Object.entries(operation.requestBody?.content ?? {})) {
        contract[`${name} takes ${type}`] = schema ? typeOf(schema) : "bytes";
        if (schema) collect(document, schema, requests);
      }
      // Refusals may come and go; their form is one schema.
      for (const [status, given] of Object.entries(operation.responses).filter(([status]) => status < "300")) {
        const { content = {} } = resolve<ResponseObject>(document, given);
        contract[`${name} answers ${status}`] = Object.entries(content)
          .map(([type, { schema }]) => `${type}: ${schema ? typeOf(schema) : "bytes"}`)
          .join("; ");
      }
    }
  }
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    const side = requests.has(name) ? "request" : "answer";
    contract[`${side} ${name}`] = typeOf(schema);
    addInside(contract, `${side} ${name}`, schema);
  }
  return Object.fromEntries(Object.entries(contract).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function resolve<T extends object>(document: OpenApiDocument, given: T | { $ref: string }): T {
  if (!("$ref" in given)) return given;
  const [, , kind, name] = given.$ref.split("/") as [string, string, "parameters" | "responses", string];
  return document.components[kind][name] as T;
}

/** The names of all schemas a request is made of. */
function collect(document: OpenApiDocument, schema: JsonSchema, names: Set<string>): void {
  const name = schema.$ref?.split("/").at(-1);
  if (name !== undefined && !names.has(name)) {
    names.add(name);
    collect(document, document.components.schemas[name]!, names);
  }
  const inside = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.anyOf ?? []),
    ...(schema.items ? [schema.items] : []),
  ];
  for (const one of inside) collect(document, one, names);
}

function addField(contract: Contract, key: string, schema: JsonSchema, isRequired: boolean): void {
  contract[key] = typeOf(schema) + (isRequired ? REQUIRED : OPTIONAL);
  addInside(contract, key, schema);
}

function addInside(contract: Contract, key: string, schema: JsonSchema): void {
  for (const value of (schema.enum ?? []).filter((value) => value !== null))
    contract[`${key} = ${String(value)}`] = "value";
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    addField(contract, `${key}.${name}`, field, schema.required?.includes(name) ?? false);
  }
  if (schema.items) addInside(contract, `${key}.[]`, schema.items);
}

function typeOf(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return schema.$ref.split("/").at(-1)!;
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.items)
    return [schema.type]
      .flat()
      .map((type) => (type === "array" ? `list of ${typeOf(schema.items!)}` : type))
      .join(" or ");
  const plain = [schema.type ?? "anything"].flat().join(" or ");
  const type = schema.enum ? `one of its values, ${plain}` : plain;
  return schema["format"] === undefined ? type : `${type} (${String(schema["format"])})`;
}

const EVENT: OutboundEvent = {
  id: "evt_0000000000000000000000000",
  type: "a.b",
  sourceName: "orders",
  schemaVersion: 1,
  orderingKey: "key",
  causeEventId: "evt_0",
  occurredAt: 0,
  relayedAt: 0,
  contentType: "application/json",
  contentEncoding: "gzip",
  payloadIsJson: true,
  hopCount: 0,
};
const PLAIN: OutboundEvent = { ...EVENT, orderingKey: null, causeEventId: null, contentEncoding: null };

function envelopeContract(): Contract {
  const kinds = { envelope: true, "envelope of bytes": false };
  return Object.fromEntries(
    Object.entries(kinds).flatMap(([kind, payloadIsJson]) => {
      const bodies = [EVENT, PLAIN].map((event) => {
        const { body } = outboundBody("envelope", { ...event, payloadIsJson }, new TextEncoder().encode("{}"));
        return JSON.parse(new TextDecoder().decode(body)) as Record<string, unknown>;
      });
      return seenIn(`answer ${kind}.`, bodies);
    }),
  );
}

function headerContract(): Contract {
  const delivery = { eventId: EVENT.id, endpointId: "ep_0000000000000000", replayNo: 0 };
  const headers = [EVENT, PLAIN].map((event) =>
    Object.fromEntries([
      ...eventHeaders(event, delivery, 1, 0),
      ...signatureHeaders(delivery, 0, "v1,"),
      ...sourceSignatureHeaders(event === EVENT ? "src_0" : null),
    ]),
  );
  return Object.fromEntries(seenIn("answer header ", headers));
}

/** The fields of things of one kind: always there or not. */
function seenIn(prefix: string, all: Record<string, unknown>[]): [string, string][] {
  return Object.entries(Object.assign({}, ...all) as object).map(([name, value]) => [
    prefix + name,
    typeof value + (all.every((one) => name in one) ? REQUIRED : OPTIONAL),
  ]);
}
