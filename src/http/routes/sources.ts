import { Hono } from "hono";
import { createSource } from "../../app/source/create-source.ts";
import { deleteSource } from "../../app/source/delete-source.ts";
import { rotateSourceKey } from "../../app/source/rotate-source-key.ts";
import { getSource, listSources } from "../../app/source/read-source.ts";
import { updateSource } from "../../app/source/update-source.ts";
import type { HttpContext } from "../context.ts";
import { presentPage } from "../present/page.ts";
import { presentSource, presentSourceWithKey } from "../present/source.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

export const sourceRoutes = new Hono<HttpContext>()
  .post("/", async (c) => {
    const created = await createSource(c.var.deps, c.var.principal, await readJson(c));
    return c.json(presentSourceWithKey(created), 201);
  })
  .get("/", async (c) => {
    const page = await listSources(c.var.deps, c.var.principal, readQuery(c));
    return c.json(presentPage(page, presentSource));
  })
  .get("/:id", async (c) => {
    const source = await getSource(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentSource(source));
  })
  .patch("/:id", async (c) => {
    const source = await updateSource(c.var.deps, c.var.principal, c.req.param("id"), await readJson(c));
    return c.json(presentSource(source));
  })
  .post("/:id/rotate-key", async (c) => {
    const rotated = await rotateSourceKey(c.var.deps, c.var.principal, c.req.param("id"), await readJson(c));
    const { source, signingKey } = rotated;
    if (signingKey === null) return c.json(presentSource(source));
    return c.json(presentSourceWithKey({ source, signingKey }), 201);
  })
  .delete("/:id", async (c) => {
    await readNothing(c);
    await deleteSource(c.var.deps, c.var.principal, c.req.param("id"));
    return c.body(null, 204);
  });
