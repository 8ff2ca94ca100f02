import { Hono } from "hono";
import { find } from "../../app/find/find.ts";
import type { HttpContext } from "../context.ts";
import { presentFindings } from "../present/find.ts";
import { readQuery } from "../request.ts";

export const findRoutes = new Hono<HttpContext>().get("/", async (c) =>
  c.json(presentFindings(await find(c.var.deps, c.var.principal, readQuery(c)))),
);
