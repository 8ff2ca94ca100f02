import { Hono } from "hono";
import { readWebhookKeys } from "../../app/source/read-webhook-keys.ts";
import type { HttpContext } from "../context.ts";
import { presentWebhookKeys } from "../present/webhook-keys.ts";

/**
 * For caches on the way to whoever verifies. A rotation overlaps for a day at least, so five minutes hide nothing that is needed;
 * and a key that was ended by force is believed no longer than that.
 */
const CACHE_CONTROL = "public, max-age=300";

/** Public keys, for anybody. */
export const webhookKeyRoutes = new Hono<HttpContext>().get("/:id", async (c) => {
  const sourceId = c.req.param("id");
  const keys = await readWebhookKeys(c.var.central, sourceId);
  c.set("cacheControl", CACHE_CONTROL);
  return c.json(presentWebhookKeys(sourceId, keys));
});
