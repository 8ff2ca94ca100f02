import { Hono } from "hono";
import { createEventType } from "../../app/event-type/create-event-type.ts";
import { deleteEventType } from "../../app/event-type/delete-event-type.ts";
import { getEventType, listEventTypes } from "../../app/event-type/read-event-type.ts";
import { updateEventType } from "../../app/event-type/update-event-type.ts";
import type { HttpContext } from "../context.ts";
import { presentEventType } from "../present/event-type.ts";
import { presentPage } from "../present/page.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

export const eventTypeRoutes = new Hono<HttpContext>()
  .post("/", async (c) => {
    const eventType = await createEventType(c.var.deps, c.var.principal, await readJson(c));
    return c.json(presentEventType(eventType), 201);
  })
  .get("/", async (c) => {
    const page = await listEventTypes(c.var.deps, c.var.principal, readQuery(c));
    return c.json(presentPage(page, presentEventType));
  })
  .get("/:name", async (c) => {
    const eventType = await getEventType(c.var.deps, c.var.principal, c.req.param("name"));
    return c.json(presentEventType(eventType));
  })
  .patch("/:name", async (c) => {
    const eventType = await updateEventType(c.var.deps, c.var.principal, c.req.param("name"), await readJson(c));
    return c.json(presentEventType(eventType));
  })
  .delete("/:name", async (c) => {
    await readNothing(c);
    await deleteEventType(c.var.deps, c.var.principal, c.req.param("name"));
    return c.body(null, 204);
  });
