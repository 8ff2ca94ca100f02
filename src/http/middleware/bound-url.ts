import { createMiddleware } from "hono/factory";
import { AppError } from "../../app/app-error.ts";
import type { HttpContext } from "../context.ts";

/** Four times what the longest publish needs, all of it percent-encoded. */
const MAX_URL_LENGTH = 8_192;

/** Refuses a URL that is too long before anything looks into it: what is in path and query is bounded by this. */
export const boundUrl = createMiddleware<HttpContext>(async (c, next) => {
  if (c.req.url.length > MAX_URL_LENGTH) {
    throw new AppError("uri_too_long", `The URL is longer than ${MAX_URL_LENGTH} characters.`);
  }
  await next();
});
