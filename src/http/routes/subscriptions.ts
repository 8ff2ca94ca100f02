import { Hono } from "hono";
import { createSubscription } from "../../app/subscription/create-subscription.ts";
import { deleteSubscription } from "../../app/subscription/delete-subscription.ts";
import { getSubscription, listSubscriptions } from "../../app/subscription/read-subscription.ts";
import { disableSubscription, enableSubscription } from "../../app/subscription/switch-subscription.ts";
import { updateSubscription } from "../../app/subscription/update-subscription.ts";
import type { HttpContext } from "../context.ts";
import { presentPage } from "../present/page.ts";
import { presentSubscription } from "../present/subscription.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

export const subscriptionRoutes = new Hono<HttpContext>()
  .post("/", async (c) => {
    const subscription = await createSubscription(c.var.deps, c.var.principal, await readJson(c));
    return c.json(presentSubscription(subscription), 201);
  })
  .get("/", async (c) => {
    const page = await listSubscriptions(c.var.deps, c.var.principal, readQuery(c));
    return c.json(presentPage(page, presentSubscription));
  })
  .get("/:id", async (c) => {
    const subscription = await getSubscription(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentSubscription(subscription));
  })
  .patch("/:id", async (c) => {
    const subscription = await updateSubscription(c.var.deps, c.var.principal, c.req.param("id"), await readJson(c));
    return c.json(presentSubscription(subscription));
  })
  .delete("/:id", async (c) => {
    await readNothing(c);
    await deleteSubscription(c.var.deps, c.var.principal, c.req.param("id"));
    return c.body(null, 204);
  })
  .post("/:id/disable", async (c) => {
    await readNothing(c);
    const subscription = await disableSubscription(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentSubscription(subscription));
  })
  .post("/:id/enable", async (c) => {
    await readNothing(c);
    const subscription = await enableSubscription(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentSubscription(subscription));
  });
