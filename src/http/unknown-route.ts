import type { Context, Hono } from "hono";
import { METHOD_NAME_ALL } from "hono/router";
import { AppError } from "../app/app-error.ts";
import type { HttpContext } from "./context.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

export const noSuchRoute = () => new AppError("not_found", "There is no such route. /openapi.json and /docs have all.");

/**
 * Nothing handles this method and path: 405 where another method would be handled, else 404; token or not. HEAD is answered
 * wherever GET is. OPTIONS is a wrong method like any other: no browser of another origin is meant to hold a key.
 */
export function unknownRoute(app: Hono<HttpContext>, c: Context<HttpContext>): { error: AppError; allow?: string } {
  const allowed = METHODS.filter((method) =>
    app.router.match(method, c.req.path)[0].some(([[, route]]) => route.method !== METHOD_NAME_ALL),
  );
  if (allowed.length === 0) return { error: noSuchRoute() };
  const allow = allowed.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : method)).join(", ");
  return { error: new AppError("method_not_allowed", `This route takes ${allow}.`), allow };
}
