import { Hono } from "hono";
import { createReplay } from "../../app/replay/create-replay.ts";
import { getReplay, listReplays } from "../../app/replay/read-replay.ts";
import { cancelReplay, startReplay } from "../../app/replay/switch-replay.ts";
import type { HttpContext } from "../context.ts";
import { presentPage } from "../present/page.ts";
import { presentReplay } from "../present/replay.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

export const replayRoutes = new Hono<HttpContext>()
  .post("/", async (c) => {
    return c.json(presentReplay(await createReplay(c.var.deps, c.var.principal, await readJson(c))), 201);
  })
  .get("/", async (c) => {
    const page = await listReplays(c.var.deps, c.var.principal, readQuery(c));
    return c.json(presentPage(page, presentReplay));
  })
  .get("/:id", async (c) => c.json(presentReplay(await getReplay(c.var.deps, c.var.principal, c.req.param("id")))))
  .post("/:id/start", async (c) => {
    await readNothing(c);
    return c.json(presentReplay(await startReplay(c.var.deps, c.var.principal, c.req.param("id"))));
  })
  .post("/:id/cancel", async (c) => {
    await readNothing(c);
    return c.json(presentReplay(await cancelReplay(c.var.deps, c.var.principal, c.req.param("id"))));
  });
