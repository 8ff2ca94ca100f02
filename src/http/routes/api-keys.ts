import { Hono } from "hono";
import { createApiKey } from "../../app/api-key/create-api-key.ts";
import { deleteApiKey } from "../../app/api-key/delete-api-key.ts";
import { getApiKey, listApiKeys } from "../../app/api-key/read-api-key.ts";
import { updateApiKey } from "../../app/api-key/update-api-key.ts";
import type { HttpContext } from "../context.ts";
import { presentApiKey, presentCreatedApiKey } from "../present/api-key.ts";
import { presentPage } from "../present/page.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

export const apiKeyRoutes = new Hono<HttpContext>()
  .post("/", async (c) => {
    return c.json(presentCreatedApiKey(await createApiKey(c.var.deps, c.var.principal, await readJson(c))), 201);
  })
  .get("/", async (c) => {
    const page = await listApiKeys(c.var.deps, c.var.principal, readQuery(c));
    return c.json(presentPage(page, presentApiKey));
  })
  .get("/:id", async (c) => {
    const apiKey = await getApiKey(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentApiKey(apiKey));
  })
  .patch("/:id", async (c) => {
    const apiKey = await updateApiKey(c.var.deps, c.var.principal, c.req.param("id"), await readJson(c));
    return c.json(presentApiKey(apiKey));
  })
  .delete("/:id", async (c) => {
    await readNothing(c);
    await deleteApiKey(c.var.deps, c.var.principal, c.req.param("id"));
    return c.body(null, 204);
  });
