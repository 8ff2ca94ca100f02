import { Hono } from "hono";
import { cancelDelivery } from "../../app/delivery/cancel-delivery.ts";
import { listDeliveries } from "../../app/delivery/list-deliveries.ts";
import { getDelivery } from "../../app/delivery/read-delivery.ts";
import { replayDelivery } from "../../app/delivery/replay-delivery.ts";
import { retryDelivery } from "../../app/delivery/retry-delivery.ts";
import type { HttpContext } from "../context.ts";
import { presentAttempts, presentDelivery, presentDeliveryWithAttempts } from "../present/delivery.ts";
import { presentTwoWayPage } from "../present/page.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

export const deliveryRoutes = new Hono<HttpContext>()
  .get("/", async (c) =>
    c.json(presentTwoWayPage(await listDeliveries(c.var.deps, c.var.principal, readQuery(c)), presentDelivery)),
  )
  .get("/:id", async (c) => {
    return c.json(presentDeliveryWithAttempts(await getDelivery(c.var.deps, c.var.principal, c.req.param("id"))));
  })
  .get("/:id/attempts", async (c) => {
    const { delivery, attempts } = await getDelivery(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json({ data: presentAttempts(delivery, attempts), next_cursor: null });
  })
  .post("/:id/retry", async (c) => {
    await readNothing(c);
    return c.json(presentDelivery(await retryDelivery(c.var.deps, c.var.principal, c.req.param("id"))), 202);
  })
  .post("/:id/replay", async (c) => {
    const replay = await replayDelivery(c.var.deps, c.var.principal, c.req.param("id"), await readJson(c));
    return c.json(presentDelivery(replay), 202);
  })
  .post("/:id/cancel", async (c) => {
    await readNothing(c);
    return c.json(presentDelivery(await cancelDelivery(c.var.deps, c.var.principal, c.req.param("id"))));
  });
