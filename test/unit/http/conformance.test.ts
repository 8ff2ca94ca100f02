import { describe, expect, test } from "vitest";
import { openApiDocument } from "../../../src/http/openapi/document.ts";
import { createCheck } from "../../e2e/support/conformance.ts";
import type { Document } from "../../e2e/support/document.ts";

// The check that all e2e tests call through: it must be able to fail.
const check = createCheck(JSON.parse(JSON.stringify(openApiDocument())) as Document);

const REQUEST_ID = "req_0123456789abcdef";
const SOURCE = {
  id: "src_0000000000000000",
  name: "orders",
  allowed_event_types: ["*"],
  signing_key_version: 1,
  previous_valid_until: null,
  delivery_key_version: 1,
  delivery_key_previous_valid_until: null,
  created_at: "2026-01-31T12:00:00.000Z",
};
const PROBLEM = {
  type: "urn:hooklane:problem:not_found",
  title: "Not found",
  status: 404,
  detail: "No such source.",
  code: "not_found",
  request_id: REQUEST_ID,
};

interface Given {
  method?: string;
  path?: string;
  status?: number;
  type?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

function wrongWith({ method = "GET", path = `/v1/sources/${SOURCE.id}`, status = 200, type, body, headers }: Given) {
  const isProblem = status >= 400;
  const contentType = type ?? (isProblem ? "application/problem+json" : "application/json");
  const response = new Response(null, {
    status,
    headers: { "X-Request-Id": REQUEST_ID, ...(contentType && { "Content-Type": contentType }), ...headers },
  });
  return check({
    method,
    path,
    response,
    text: body === "" ? "" : JSON.stringify(body ?? (isProblem ? PROBLEM : SOURCE)),
  });
}

describe("an answer that the document describes passes", () => {
  test.each<[string, Given]>([
    ["a row", {}],
    ["a page", { path: "/v1/sources", body: { data: [SOURCE], next_cursor: null } }],
    ["a refusal", { status: 404 }],
    ["an empty answer", { method: "DELETE", status: 204, type: "", body: "" }],
    ["bytes of any type", { path: "/v1/events/evt_0/payload", type: "text/csv", body: "" }],
    ["HEAD of what can be read", { method: "HEAD", body: "" }],
    ["an unknown route", { path: "/v1/nothing", status: 404 }],
    [
      "a wrong method",
      {
        method: "PUT",
        status: 405,
        headers: { Allow: "GET, HEAD, PATCH, DELETE" },
        body: { ...PROBLEM, status: 405, code: "method_not_allowed", type: "urn:hooklane:problem:method_not_allowed" },
      },
    ],
  ])("%s", (_, given) => {
    expect(wrongWith(given)).toBeNull();
  });
});

describe("an answer that the document does not describe is found", () => {
  const { name: _, ...nameless } = SOURCE;
  test.each<[string, Given]>([
    ["an unknown field", { body: { ...SOURCE, color: "red" } }],
    [
      "an unknown field of a row of a page",
      { path: "/v1/sources", body: { data: [{ ...SOURCE, color: 1 }], next_cursor: null } },
    ],
    ["a field is missing", { body: nameless }],
    ["another type", { body: { ...SOURCE, signing_key_version: "1" } }],
    ["null", { body: { ...SOURCE, name: null } }],
    ["a time without milliseconds", { body: { ...SOURCE, created_at: "2026-01-31T12:00:00Z" } }],
    ["another noun's id", { body: { ...SOURCE, id: "ep_0000000000000000" } }],
    ["a status", { status: 201 }],
    ["a refusal's status", { status: 418, body: { ...PROBLEM, status: 418 } }],
    [
      "a code of another status",
      { status: 404, body: { ...PROBLEM, code: "held", type: "urn:hooklane:problem:held" } },
    ],
    ["a code of nothing", { status: 404, body: { ...PROBLEM, code: "gone", type: "urn:hooklane:problem:gone" } }],
    ["a content type", { type: "text/plain" }],
    ["a refusal that is no problem", { status: 404, type: "application/json" }],
    ["a body where there is none", { method: "DELETE", status: 204 }],
    ["no request id", { headers: { "X-Request-Id": "" } }],
    ["another request id", { status: 404, body: { ...PROBLEM, request_id: "req_1111111111111111" } }],
    ["another status in the body", { status: 404, body: { ...PROBLEM, status: 400 } }],
    ["an unknown route that answers", { path: "/v1/nothing" }],
    ["a wrong method that is 404", { method: "PUT", status: 404 }],
    [
      "a wrong method without Allow",
      {
        method: "PUT",
        status: 405,
        body: { ...PROBLEM, status: 405, code: "method_not_allowed", type: "urn:hooklane:problem:method_not_allowed" },
      },
    ],
  ])("%s", (_, given) => {
    expect(wrongWith(given)).not.toBeNull();
  });
});
