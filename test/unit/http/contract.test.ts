import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openApiDocument, type OpenApiDocument } from "../../../src/http/openapi/document.ts";
import { compare, contractOf, type Contract } from "./support/contract.ts";

const SNAPSHOT = join(import.meta.dirname, "contract.snapshot.json");
const IS_UPDATE = process.env["UPDATE_CONTRACT"] === "true";

test("the contract only grows, and what is new is in the snapshot", () => {
  const now = contractOf(openApiDocument());
  const { breaking, additions } = compare(JSON.parse(readFileSync(SNAPSHOT, "utf8")) as Contract, now);
  expect(breaking, "Somebody relies on this").toEqual([]);
  if (IS_UPDATE) writeFileSync(SNAPSHOT, `${JSON.stringify(now, null, 2)}\n`);
  else expect(additions, "New, and breaks nobody: run npm run contract:update").toEqual([]);
});

describe("what breaks somebody is told from what is new", () => {
  const changed = (change: (document: any) => void) => {
    const document = structuredClone(openApiDocument()) as OpenApiDocument;
    change(document);
    return compare(contractOf(openApiDocument()), contractOf(document));
  };
  const endpoint = (document: any) => document.components.schemas.Endpoint;
  const createEndpoint = (document: any) => document.components.schemas.CreateEndpoint;
  const list = (document: any) => document.paths["/v1/deliveries"].get;

  test.each<[string, (document: any) => void]>([
    ["a field of an answer is gone", (d) => delete endpoint(d).properties.url],
    ["a field of an answer has another type", (d) => (endpoint(d).properties.timeout_ms.type = "string")],
    ["a field of an answer may be null", (d) => (endpoint(d).properties.url.type = ["string", "null"])],
    ["a field of an answer may be absent", (d) => endpoint(d).required.shift()],
    [
      "a field of a field is gone",
      (d) => delete d.components.schemas.LaneHead.properties.last_outcome.properties.error_class,
    ],
    ["a value of an answer is gone", (d) => endpoint(d).properties.state.enum.pop()],
    ["a field of a request is gone", (d) => delete createEndpoint(d).properties.name],
    ["a field of a request is required now", (d) => createEndpoint(d).required.push("name")],
    [
      "a new field of a request is required",
      (d) => {
        createEndpoint(d).properties.region = { type: "string" };
        createEndpoint(d).required.push("region");
      },
    ],
    ["a value of a request is gone", (d) => createEndpoint(d).properties.on_exhausted.enum.pop()],
    ["a parameter is gone", (d) => list(d).parameters.pop()],
    ["a parameter is required now", (d) => (list(d).parameters.at(-1).required = true)],
    [
      "a new parameter is required",
      (d) => list(d).parameters.push({ name: "x", in: "query", required: true, schema: {} }),
    ],
    ["a route is gone", (d) => delete d.paths["/v1/deliveries"].get],
    ["a client's function has another name", (d) => (list(d).operationId = "deliveries")],
    ["an answer has another schema", (d) => (d.paths["/health"].get.responses[200].content = {})],
    ["a scope may no longer call", (d) => list(d).security[0].apiKey.shift()],
  ])("breaks: %s", (_, change) => {
    expect(changed(change).breaking).not.toEqual([]);
  });

  test.each<[string, (document: any) => void]>([
    ["a new field of an answer", (d) => (endpoint(d).properties.region = { type: "string" })],
    ["a new value of an answer", (d) => endpoint(d).properties.state.enum.push("resting")],
    [
      "a new field of a request that may be left out",
      (d) => (createEndpoint(d).properties.region = { type: "string" }),
    ],
    ["a field of a request that may be left out now", (d) => (createEndpoint(d).required = [])],
    ["a new parameter", (d) => list(d).parameters.push({ name: "x", in: "query", schema: { type: "string" } })],
    ["a new route with what it requires", (d) => (d.paths["/v2"] = { get: { ...list(d), operationId: "new" } })],
    ["a new code", (d) => d.components.schemas.Problem.properties.code.enum.push("teapot")],
  ])("is new: %s", (_, change) => {
    const { breaking, additions } = changed(change);
    expect(breaking).toEqual([]);
    expect(additions).not.toEqual([]);
  });

  test("a header or field of the envelope that is gone or changed breaks", () => {
    const now = contractOf(openApiDocument());
    for (const key of ["answer header X-Webhook-Event-Id", "answer header webhook-id", "answer envelope.payload"]) {
      const { [key]: was, ...rest } = now;
      expect(was).toMatch(/, required$/);
      expect(compare(now, rest).breaking).toHaveLength(1);
      expect(compare(now, { ...rest, [key]: was!.replace("required", "optional") }).breaking).toHaveLength(1);
    }
  });
});
