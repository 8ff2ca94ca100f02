import { Hono, type Context } from "hono";
import { exportAttempts } from "../../app/export/export-attempts.ts";
import { exportDeliveries } from "../../app/export/export-deliveries.ts";
import { exportEvents } from "../../app/export/export-events.ts";
import type { HttpContext } from "../context.ts";
import { ndjson } from "../ndjson.ts";
import { presentAttempt, presentDelivery } from "../present/delivery.ts";
import { presentEvent } from "../present/event.ts";
import { readQuery } from "../request.ts";

export const exportRoutes = new Hono<HttpContext>()
  .get("/events", async (c) => {
    const rows = exportEvents(c.var.deps, c.var.principal, readQuery(c));
    return lines(c, await ndjson(rows, presentEvent));
  })
  .get("/deliveries", async (c) => {
    const rows = await exportDeliveries(c.var.deps, c.var.principal, readQuery(c));
    return lines(c, await ndjson(rows, presentDelivery));
  })
  .get("/attempts", async (c) => {
    const rows = exportAttempts(c.var.deps, c.var.principal, readQuery(c));
    return lines(c, await ndjson(rows, (attempt) => presentAttempt(attempt, attempt)));
  });

function lines(c: Context<HttpContext>, body: ReadableStream<Uint8Array>): Response {
  return c.body(body, 200, { "Content-Type": "application/x-ndjson" });
}
