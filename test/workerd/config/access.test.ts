import { expect, test } from "vitest";
import { createApi, createTestTenant } from "../support/api.ts";

/** One of each noun, with a change that is good for it. */
async function createOneOfEach(t: Awaited<ReturnType<typeof createTestTenant>>) {
  const { body: source } = await t.api.post("/v1/sources", { name: "a" });
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: "https://hooks.example.com/" });
  const { body: subscription } = await t.api.post("/v1/subscriptions", {
    endpoint_id: endpoint.id,
    event_type_pattern: "*",
  });
  const { body: key } = await t.api.post("/v1/api-keys", { scope: "read" });
  return {
    source,
    endpoint,
    rows: [
      { list: "/v1/sources", path: `/v1/sources/${source.id}`, change: { name: "b" } },
      { list: "/v1/endpoints", path: `/v1/endpoints/${endpoint.id}`, change: { name: "b" } },
      { list: "/v1/subscriptions", path: `/v1/subscriptions/${subscription.id}`, change: { event_type_pattern: "b" } },
      { list: "/v1/api-keys", path: `/v1/api-keys/${key.id}`, change: { name: "b" } },
    ],
  };
}

test("a read key reads everything and changes nothing", async () => {
  const t = await createTestTenant();
  const { rows, endpoint } = await createOneOfEach(t);
  const reader = createApi(await t.readKey());
  for (const { list, path, change } of rows) {
    expect((await reader.get(list)).status).toBe(200);
    expect((await reader.get(path)).status).toBe(200);
    expect((await reader.post(list, {})).status).toBe(403);
    expect((await reader.patch(path, change)).status).toBe(403);
    expect((await reader.delete(path)).status).toBe(403);
  }
  expect((await reader.post(`/v1/endpoints/${endpoint.id}/secrets/rotate`, {})).status).toBe(403);
});

test("a publish key is kept out of all configuration", async () => {
  const t = await createTestTenant();
  const { rows, source, endpoint } = await createOneOfEach(t);
  const publisher = createApi(await t.publishKey(source.id));
  for (const { list, path, change } of rows) {
    expect((await publisher.get(list)).status).toBe(403);
    expect((await publisher.get(path)).status).toBe(403);
    expect((await publisher.post(list, {})).status).toBe(403);
    expect((await publisher.patch(path, change)).status).toBe(403);
    expect((await publisher.delete(path)).status).toBe(403);
  }
  expect((await publisher.get(`/v1/endpoints/${endpoint.id}/secrets`)).status).toBe(403);
});

test("another tenant's rows are neither seen, changed nor listed", async () => {
  const [t, other] = await Promise.all([createTestTenant(), createTestTenant()]);
  const { rows, endpoint } = await createOneOfEach(t);
  for (const { list, path, change } of rows) {
    expect((await other.api.get(path)).status).toBe(404);
    expect((await other.api.patch(path, change)).status).toBe(404);
    expect((await other.api.delete(path)).status).toBe(404);
    const id = path.split("/").at(-1);
    expect((await other.api.get(list)).body.data.map((row: { id: string }) => row.id)).not.toContain(id);
    expect((await t.api.get(path)).status).toBe(200);
  }
  expect((await other.api.get(`/v1/endpoints/${endpoint.id}/secrets?reveal=true`)).status).toBe(404);
  expect((await other.api.post(`/v1/endpoints/${endpoint.id}/secrets/rotate`, { force: true })).status).toBe(404);
  expect((await t.api.get(`/v1/endpoints/${endpoint.id}/secrets`)).body.data).toHaveLength(1);
});
