import { html, raw } from "hono/html";
import { encodeBase64 } from "../core/base64.ts";
import { sha256 } from "../core/sha256.ts";
import type { OpenApiDocument, OperationObject, Parameter, ResponseObject } from "./openapi/document.ts";
import type { JsonSchema } from "./openapi/json-schema.ts";

type Html = ReturnType<typeof html>;

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem; background: color-mix(in srgb, currentColor 8%, transparent); }
details { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
details > :not(summary) { margin-left: 1rem; }
summary { padding: 0.6rem 0; cursor: pointer; }
dt { margin-top: 0.5rem; }
dd { margin-left: 1rem; }
nav a { margin-right: 1rem; }
`;

/** The document as one page without scripts: everything it needs is in it, and it may load nothing. */
export async function docsPage(document: OpenApiDocument): Promise<{ body: string; securityPolicy: string }> {
  const hash = await sha256(STYLE);
  const only = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  return {
    body: String(await render(document)),
    securityPolicy: `default-src 'none'; style-src 'sha256-${encodeBase64(hash)}'; ${only}`,
  };
}

function render(document: OpenApiDocument): Html {
  const { info, tags, paths, components } = document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${info.title} API ${info.version}</title>
        ${raw(`<style>${STYLE}</style>`)}
      </head>
      <body>
        <h1>${info.title} API ${info.version}</h1>
        <p>${prose(info.description)}</p>
        <p>The same for programs: <a href="/openapi.json">openapi.json</a>.</p>
        <nav>
          ${tags.map(({ name }) => html`<a href="#${anchor(name)}">${name}</a> `)}<a href="#schemas">Schemas</a>
        </nav>
        <h2>Who calls</h2>
        <p>With <code>Authorization: Bearer …</code>, or signed:</p>
        <dl>
          ${Object.entries(components.securitySchemes).map(
            ([name, { description }]) =>
              html`<dt><code>${name}</code></dt>
                <dd>${prose(description)}</dd>`,
          )}
        </dl>
        ${tags.map(
          ({ name }) =>
            html`<h2 id="${anchor(name)}">${name}</h2>
              ${operations
                .filter(({ operation }) => operation.tags.includes(name))
                .map(({ method, path, operation }) => operationHtml(document, method, path, operation))}`,
        )}
        <h2 id="schemas">Schemas</h2>
        ${Object.entries(components.schemas).map(
          ([name, schema]) =>
            html`<details>
              <summary><code>${name}</code></summary>
              <div id="schema-${name}">${schemaHtml(schema)}</div>
            </details>`,
        )}
      </body>
    </html>`;
}

function operationHtml(document: OpenApiDocument, method: string, path: string, operation: OperationObject): Html {
  const { parameters = [], requestBody, responses, security } = operation;
  const found = parameters.map((given) => resolve<Parameter>(document, given));
  // The id is inside, since browsers open what a link leads into, not what it leads to.
  return html`<details>
    <summary><code>${method.toUpperCase()} ${path}</code> ${operation.summary}</summary>
    <div id="${operation.operationId}">
      ${operation.description !== undefined && html`<p>${prose(operation.description)}</p>`}
      <p>Needs: ${security.map(securityText).join(", or ") || "no token"}.</p>
      ${
        found.length > 0 &&
        html`<h4>Parameters</h4>
          <dl>${found.map(parameterHtml)}</dl>`
      }
      ${
        requestBody &&
        html`<h4>Body</h4>
          ${Object.entries(requestBody.content).map(
            ([type, { schema, example }]) =>
              html`<p><code>${type}</code> ${schema && typeHtml(schema)}</p>
                ${example !== undefined && html`<pre>${exampleText(example)}</pre>`}`,
          )}`
      }
      <h4>Answers</h4>
      <dl>
        ${Object.entries(responses).map(([status, given]) => {
          const response = resolve<ResponseObject>(document, given);
          return html`<dt>
              <code>${status}</code> ${Object.values(response.content ?? {}).map(
                ({ schema }) => schema && typeHtml(schema),
              )}
            </dt>
            <dd>${prose(response.description)}</dd>`;
        })}
      </dl>
    </div>
  </details>`;
}

function anchor(tag: string): string {
  return tag.toLowerCase().replaceAll(" ", "-");
}

function resolve<T extends object>(document: OpenApiDocument, given: T | { $ref: string }): T {
  if (!("$ref" in given)) return given;
  const [, , kind, name] = given.$ref.split("/") as [string, string, "parameters" | "responses", string];
  return document.components[kind][name] as T;
}

function securityText(requirement: Record<string, string[]>): string {
  return Object.entries(requirement)
    .map(([scheme, scopes]) => (scopes.length > 0 ? `${scheme} of scope ${scopes.join(" or ")}` : scheme))
    .join(" and ");
}

function parameterHtml({ name, in: place, required, description, schema }: Parameter): Html {
  return html`<dt><code>${name}</code> in ${place}: ${typeHtml(schema)}${required && ", required"}</dt>
    <dd>${prose(description)}</dd>`;
}

function schemaHtml(schema: JsonSchema): Html {
  if (!schema.properties) return html`<p>${typeHtml(schema)}</p>`;
  return html`<dl>
    ${Object.entries(schema.properties).map(
      ([name, field]) =>
        html`<dt><code>${name}</code> ${typeHtml(field)}${schema.required?.includes(name) ? "" : ", may be absent"}</dt>
          <dd>${prose(field.description)}${field.properties && schemaHtml(field)}</dd>`,
    )}
  </dl>`;
}

/** A type in one line, with links to those that have a name. */
function typeHtml(schema: JsonSchema): Html {
  const name = schema.$ref?.split("/").at(-1);
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`;
  if (schema.anyOf) return html`${schema.anyOf.map((one, i) => html`${i > 0 && " or "}${typeHtml(one)}`)}`;
  if (schema.items) return html`list of ${typeHtml(schema.items)}`;
  if (schema.enum) return html`${schema.enum.map((value, i) => html`${i > 0 && ", "}<code>${String(value)}</code>`)}`;
  const type = [schema.type ?? "anything"].flat().join(" or ");
  const { minimum, maximum, format } = schema;
  const range = minimum === undefined && maximum === undefined ? "" : ` ${minimum ?? ""}–${maximum ?? ""}`;
  return html`${type}${range}${format !== undefined && ` (${String(format)})`}`;
}

/** Text in which backticks stand around code. */
function prose(text: unknown): Html {
  const pieces = (typeof text === "string" ? text : "").split("`");
  return html`${pieces.map((piece, i) => (i % 2 === 1 ? html`<code>${piece}</code>` : piece))}`;
}

function exampleText(example: unknown): string {
  return typeof example === "string" ? example : JSON.stringify(example, null, 2);
}
