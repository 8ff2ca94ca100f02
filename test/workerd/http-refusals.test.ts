import { expect, test } from "vitest";
import { createScene } from "./support/scene.ts";

test.each([
  ["POST", "/v1/events?source=zzz"],
  ["POST", "/v1/events/batch?source=orders"],
  ["POST", "/v1/sources?name=q"],
  ["GET", "/v1/sources/src_0000000000000000?foo=1"],
  ["GET", "/v1/deliveries/dlv_x/attempts?limit=1"],
])("%s %s: a parameter that nothing reads is refused", async (method, path) => {
  const { tenant } = await createScene();
  const body = method === "POST" ? "{}" : null;
  const { status, body: problem } = await tenant.api.request(path, { method, body });
  expect(status).toBe(422);
  expect(problem.errors[0].path).toBe(new URL(path, "http://x").searchParams.keys().next().value);
});

test.each(["disable", "enable"])("%s takes no body", async (action) => {
  const { tenant, endpointId } = await createScene();
  const path = `/v1/endpoints/${endpointId}/${action}`;
  expect((await tenant.api.post(path, { reason: "mine" })).body.errors).toMatchObject([{ path: "reason" }]);
  expect((await tenant.api.request(path, { method: "POST", body: "{{{" })).status).toBe(400);
  expect((await tenant.api.post(path, {})).status).toBe(200);
});

test("what a header cannot hold is refused as a content type", async () => {
  const { tenant } = await createScene();
  const init = { method: "POST", body: "x", headers: { "Content-Type": "text/plain; x=\u00e9" } };
  const answer = await tenant.api.request("/v1/events/raw?type=a.b&source=orders", init);
  expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: "Content-Type" }] } });
});

test("an answer to a request full of errors is no larger than the request", async () => {
  const { tenant } = await createScene();
  const unknown = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`field_${n}`, 1]));
  const answer = await tenant.api.post("/v1/events", { ...unknown, payload: 1 });
  expect(answer.status).toBe(422);
  expect(answer.body.errors.length).toBeLessThanOrEqual(20);
});

test("a source that is named like another's id does not stand in for it", async () => {
  const { tenant } = await createScene();
  const first = await tenant.api.post("/v1/sources", { name: "first" });
  const impostor = await tenant.api.post("/v1/sources", { name: first.body.id });
  const answer = await tenant.api.post("/v1/events", { type: "a.b", source: first.body.id, payload: 1 });
  const event = await tenant.api.get(`/v1/events/${answer.body.id}`);
  expect(event.body.source_id).toBe(first.body.id);
  expect(event.body.source_id).not.toBe(impostor.body.id);
});
