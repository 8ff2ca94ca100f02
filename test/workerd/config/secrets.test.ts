import { expect, test } from "vitest";
import { createApi, createTestTenant } from "../support/api.ts";

const HOUR_MS = 3_600_000;

async function createEndpoint() {
  const t = await createTestTenant();
  const { body } = await t.api.post("/v1/endpoints", { url: "https://hooks.example.com/in" });
  return {
    t,
    endpointId: body.id,
    secrets: `/v1/endpoints/${body.id}/secrets`,
    path: `/v1/endpoints/${body.id}`,
    secret: body.secret,
  };
}

test("the live secret is listed without its text, and revealed only when an admin key asks", async () => {
  const { t, secrets, endpointId, secret } = await createEndpoint();
  const listed = await t.api.get(secrets);
  expect(listed.body).toEqual({
    data: [
      {
        id: expect.stringMatching(/^sec_/),
        endpoint_id: endpointId,
        active_from: expect.any(String),
        active_until: null,
      },
    ],
    next_cursor: null,
  });
  expect((await t.api.get(`${secrets}?reveal=true`)).body.data).toEqual([{ ...listed.body.data[0], secret }]);
  expect((await t.api.get(`${secrets}?reveal=false`)).body).toEqual(listed.body);
  expect((await t.api.get(`${secrets}?reveal=yes`)).status).toBe(422);
  expect((await createApi(await t.readKey()).get(secrets)).body).toEqual(listed.body);
  expect((await createApi(await t.readKey()).get(`${secrets}?reveal=true`)).status).toBe(403);
});

test("a rotation makes a new secret live at once and keeps the old one for the overlap", async () => {
  const { t, endpointId, secrets, path, secret } = await createEndpoint();
  const [old] = (await t.api.get(secrets)).body.data;
  const { status, body } = await t.api.post(`${secrets}/rotate`, { overlap_hours: 36 });
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.stringMatching(/^sec_/),
    endpoint_id: endpointId,
    secret: expect.stringMatching(/^whsec_/),
    active_from: expect.any(String),
    active_until: null,
    previous: { id: old.id, active_until: expect.any(String) },
  });
  expect(Date.parse(body.previous.active_until) - Date.parse(body.active_from)).toBe(36 * HOUR_MS);
  expect((await t.api.get(`${secrets}?reveal=true`)).body.data).toEqual([
    { id: body.id, endpoint_id: endpointId, secret: body.secret, active_from: body.active_from, active_until: null },
    { ...old, secret, active_until: body.previous.active_until },
  ]);
  expect((await t.api.get(path)).body.revision).toBe(2);
});

test("a rotation without a body overlaps a day", async () => {
  const { t, secrets } = await createEndpoint();
  const { status, body } = await t.api.post(`${secrets}/rotate`);
  expect(status).toBe(201);
  expect(Date.parse(body.previous.active_until) - Date.parse(body.active_from)).toBe(24 * HOUR_MS);
});

test("a third live secret is refused; force ends the oldest and keeps the newest", async () => {
  const { t, secrets } = await createEndpoint();
  const second = (await t.api.post(`${secrets}/rotate`, {})).body;
  expect(await t.api.post(`${secrets}/rotate`, {})).toMatchObject({
    status: 409,
    body: { code: "rotation_in_progress" },
  });
  const third = await t.api.post(`${secrets}/rotate`, { force: true });
  expect(third).toMatchObject({ status: 201, body: { previous: { id: second.id } } });
  const live = (await t.api.get(secrets)).body.data.map(({ id }: { id: string }) => id);
  expect(live).toEqual([third.body.id, second.id]);
});

test("of many rotations at once, one happens", async () => {
  const { t, secrets } = await createEndpoint();
  const answers = await Promise.all(Array.from({ length: 5 }, () => t.api.post(`${secrets}/rotate`, {})));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409]);
  const winner = answers.find(({ status }) => status === 201)?.body;
  const live = (await t.api.get(`${secrets}?reveal=true`)).body.data;
  expect(live).toHaveLength(2);
  expect(live[0]).toMatchObject({ id: winner.id, secret: winner.secret });
  expect(live[1].id).toBe(winner.previous.id);
});

test.each([{ overlap_hours: 23 }, { overlap_hours: 73 }, { overlap_hours: "24" }, { force: "yes" }, { overlap: 24 }])(
  "rotation %j is refused",
  async (body) => {
    const { t, secrets } = await createEndpoint();
    expect((await t.api.post(`${secrets}/rotate`, body)).status).toBe(422);
    expect((await t.api.get(secrets)).body.data).toHaveLength(1);
  },
);
