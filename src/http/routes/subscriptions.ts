import { Hono } from "hono";
import { createSubscription } from "../../app/subscription/create-subscription.ts";
import { deleteSubscription } from "../../app/subscription/delete-subscription.ts";
import { getSubscription, listSubscriptions } from "../../app/subscription/read-subscription.ts";
import { disableSubscription, enableSubscription } from "../../app/subscription/switch-subscription.ts";
import { testSubscription } from "../../app/subscription/test-subscription.ts";
import { updateSubscription } from "../../app/subscription/update-subscription.ts";
import { MAX_FIELD_BYTES, parsePublishBody } from "../../core/publish-body.ts";
import type { HttpContext } from "../context.ts";
import { presentPage } from "../present/page.ts";
import { presentSubscription, presentSubscriptionTest } from "../present/subscription.ts";
import { readBytes, readJson, readNothing, readQuery, refuseDuplicatesIn } from "../request.ts";
import { bodyError } from "./publish.ts";

export const subscriptionRoutes = new Hono<HttpContext>()
  .post("/", async (c) => {
    const subscription = await createSubscription(c.var.deps, c.var.principal, await readJson(c));
    return c.json(presentSubscription(subscription), 201);
  })
  .post("/test", async (c) => {
    const { deps, principal } = c.var;
    const bytes = await readBytes(c.req.raw, deps.maxPayloadBytes + MAX_FIELD_BYTES);
    const body = parsePublishBody(bytes);
    if (!body.ok) throw bodyError(body.error);
    refuseDuplicatesIn("event", bytes);
    return c.json(presentSubscriptionTest(await testSubscription(deps, principal, body.value)));
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
