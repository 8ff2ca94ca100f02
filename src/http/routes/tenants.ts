import { Hono } from "hono";
import { createTenant } from "../../app/tenant/create-tenant.ts";
import { deleteTenant } from "../../app/tenant/delete-tenant.ts";
import { getTenant, listTenants } from "../../app/tenant/read-tenant.ts";
import { updateTenant } from "../../app/tenant/update-tenant.ts";
import type { HttpContext } from "../context.ts";
import { presentPage } from "../present/page.ts";
import { presentTenant } from "../present/tenant.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

/** For the operator only: to be mounted behind the check that it is. */
export const tenantRoutes = new Hono<HttpContext>()
  .post("/", async (c) => c.json(presentTenant(await createTenant(c.var.central, await readJson(c))), 201))
  .get("/", async (c) => c.json(presentPage(await listTenants(c.var.central, readQuery(c)), presentTenant)))
  .get("/:id", async (c) => c.json(presentTenant(await getTenant(c.var.central, c.req.param("id")))))
  .patch("/:id", async (c) => {
    const tenant = await updateTenant(c.var.central, c.req.param("id"), await readJson(c));
    return c.json(presentTenant(tenant));
  })
  .delete("/:id", async (c) => {
    await readNothing(c);
    await deleteTenant(c.var.central, c.req.param("id"));
    return c.body(null, 204);
  });
