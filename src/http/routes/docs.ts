import { Hono } from "hono";
import type { HttpContext } from "../context.ts";
import { docsPage } from "../docs-page.ts";
import { openApiDocument } from "../openapi/document.ts";

let documentText: string | undefined;
let page: ReturnType<typeof docsPage> | undefined;

/** What the API says of itself. Public, the same for a whole version, and made when it is first asked for. */
export const docsRoutes = new Hono<HttpContext>()
  .get("/openapi.json", (c) =>
    c.body((documentText ??= JSON.stringify(openApiDocument())), 200, { "Content-Type": "application/json" }),
  )
  .get("/docs", async (c) => {
    const { body, securityPolicy } = await (page ??= docsPage(openApiDocument()));
    return c.html(body, 200, {
      "Content-Security-Policy": securityPolicy,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
    });
  });
