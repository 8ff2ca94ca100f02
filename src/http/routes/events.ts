import { Hono } from "hono";
import { eraseEventPayload } from "../../app/event/erase-payload.ts";
import { getEvent, getEventPayload, listEvents } from "../../app/event/read-event.ts";
import type { HttpContext } from "../context.ts";
import { presentEvent } from "../present/event.ts";
import { presentTwoWayPage } from "../present/page.ts";
import { readNothing, readQuery } from "../request.ts";

export const eventRoutes = new Hono<HttpContext>()
  .get("/", async (c) =>
    c.json(presentTwoWayPage(await listEvents(c.var.deps, c.var.principal, readQuery(c)), presentEvent)),
  )
  .get("/:id", async (c) => c.json(presentEvent(await getEvent(c.var.deps, c.var.principal, c.req.param("id")))))
  .get("/:id/payload", async (c) => {
    const { event, payload } = await getEventPayload(c.var.deps, c.var.principal, c.req.param("id"), readQuery(c));
    // What a producer stored must not run in the browser of whoever looks at it.
    return c.body(payload as Uint8Array<ArrayBuffer>, 200, {
      "Content-Type": event.contentType,
      "Content-Disposition": "attachment",
      "X-Content-Type-Options": "nosniff",
      "Content-Security-Policy": "default-src 'none'; sandbox",
      ...(event.contentEncoding !== null && { "X-Payload-Content-Encoding": event.contentEncoding }),
    });
  })
  .delete("/:id/payload", async (c) => {
    await readNothing(c);
    await eraseEventPayload(c.var.deps, c.var.principal, c.req.param("id"));
    return c.body(null, 204);
  });
