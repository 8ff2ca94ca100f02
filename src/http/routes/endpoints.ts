import { Hono, type Context } from "hono";
import { createEndpoint } from "../../app/endpoint/create-endpoint.ts";
import { deleteEndpoint } from "../../app/endpoint/delete-endpoint.ts";
import { listSecrets } from "../../app/endpoint/list-secrets.ts";
import { getEndpoint, listEndpoints } from "../../app/endpoint/read-endpoint.ts";
import { getHealth } from "../../app/endpoint/read-health.ts";
import { retryPending } from "../../app/endpoint/retry-pending.ts";
import { rotateSecret } from "../../app/endpoint/rotate-secret.ts";
import { getLane } from "../../app/lane/read-lane.ts";
import { moveLane } from "../../app/lane/move-lane.ts";
import { skipHead } from "../../app/lane/skip-head.ts";
import { presentLane } from "../present/lane.ts";
import { disableEndpoint, enableEndpoint, pauseEndpoint, resumeEndpoint } from "../../app/endpoint/switch-endpoint.ts";
import { testEndpoint } from "../../app/endpoint/test-endpoint.ts";
import { updateEndpoint } from "../../app/endpoint/update-endpoint.ts";
import type { HttpContext } from "../context.ts";
import { presentAttempt } from "../present/delivery.ts";
import { presentCreatedEndpoint, presentEndpoint, type RetriedPendingAnswer } from "../present/endpoint.ts";
import { presentHealth } from "../present/health.ts";
import { presentPage } from "../present/page.ts";
import { presentListedSecret, presentRotatedSecret } from "../present/secret.ts";
import { readJson, readNothing, readQuery } from "../request.ts";

export const endpointRoutes = new Hono<HttpContext>()
  .post("/", async (c) => {
    return c.json(presentCreatedEndpoint(await createEndpoint(notHere(c), c.var.principal, await readJson(c))), 201);
  })
  .get("/", async (c) => {
    const page = await listEndpoints(c.var.deps, c.var.principal, readQuery(c));
    return c.json(presentPage(page, presentEndpoint));
  })
  .get("/:id", async (c) => {
    const endpoint = await getEndpoint(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentEndpoint(endpoint));
  })
  .patch("/:id", async (c) => {
    const endpoint = await updateEndpoint(notHere(c), c.var.principal, c.req.param("id"), await readJson(c));
    return c.json(presentEndpoint(endpoint));
  })
  .delete("/:id", async (c) => {
    await readNothing(c);
    await deleteEndpoint(c.var.deps, c.var.principal, c.req.param("id"));
    return c.body(null, 204);
  })
  .post("/:id/test", async (c) => {
    await readNothing(c);
    const colo = (c.req.raw.cf?.colo as string | undefined) ?? null;
    const { delivery, attempt } = await testEndpoint(c.var.deps, c.var.principal, c.req.param("id"), colo);
    return c.json(presentAttempt(delivery, attempt));
  })
  .post("/:id/retry-pending", async (c) => {
    const { retried, nextCursor } = await retryPending(
      c.var.deps,
      c.var.principal,
      c.req.param("id"),
      await readJson(c),
    );
    return c.json({ retried, next_cursor: nextCursor } satisfies RetriedPendingAnswer);
  })
  .get("/:id/health", async (c) =>
    c.json(presentHealth(await getHealth(c.var.deps, c.var.principal, c.req.param("id")))),
  )
  .get("/:id/lane", async (c) => c.json(presentLane(await getLane(c.var.deps, c.var.principal, c.req.param("id")))))
  .post("/:id/lane/skip", async (c) => {
    const lane = await skipHead(c.var.deps, c.var.principal, c.req.param("id"), await readJson(c));
    return c.json(presentLane(lane));
  })
  .post("/:id/lane/move", async (c) => {
    await readNothing(c);
    return c.json(presentLane(await moveLane(c.var.deps, c.var.principal, c.req.param("id"))));
  })
  .post("/:id/pause", async (c) => {
    await readNothing(c);
    return c.json(presentEndpoint(await pauseEndpoint(c.var.deps, c.var.principal, c.req.param("id"))));
  })
  .post("/:id/resume", async (c) => {
    await readNothing(c);
    return c.json(presentEndpoint(await resumeEndpoint(c.var.deps, c.var.principal, c.req.param("id"))));
  })
  .post("/:id/disable", async (c) => {
    await readNothing(c);
    const endpoint = await disableEndpoint(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentEndpoint(endpoint));
  })
  .post("/:id/enable", async (c) => {
    await readNothing(c);
    const endpoint = await enableEndpoint(c.var.deps, c.var.principal, c.req.param("id"));
    return c.json(presentEndpoint(endpoint));
  })
  .get("/:id/secrets", async (c) => {
    const id = c.req.param("id");
    const secrets = await listSecrets(c.var.deps, c.var.principal, id, readQuery(c));
    return c.json({ data: secrets.map((secret) => presentListedSecret(id, secret)), next_cursor: null });
  })
  .post("/:id/secrets/rotate", async (c) => {
    const id = c.req.param("id");
    const rotated = await rotateSecret(c.var.deps, c.var.principal, id, await readJson(c));
    return c.json(presentRotatedSecret(id, rotated), 201);
  });

/**
 * The caller's adapters, which refuse the host of this very request as a destination. Whoever makes up a `Host` gets no more
 * than their own request refused: nothing is remembered of it.
 */
function notHere(c: Context<HttpContext>) {
  const { deps } = c.var;
  const ownHosts = [...deps.destinationRules.ownHosts, new URL(c.req.url).host];
  return { ...deps, destinationRules: { ...deps.destinationRules, ownHosts } };
}
