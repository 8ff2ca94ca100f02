import { expect, test } from "vitest";
import { createApi, createTestTenant } from "../support/api.ts";
import { createFiltered } from "./support.ts";

const PATH = "/v1/subscriptions/test";

test("a filter is tried on a sample: yes, no, absent and failed are told apart, with where", async () => {
  const { api } = await createTestTenant();
  const filter = "payload.total > 10";
  const answers = async (payload: unknown) => (await api.post(PATH, { filter, payload })).body;
  const none = { matched: false, skipped: false, reason: null, position: null };
  expect(await answers({ total: 11 })).toEqual({ ...none, matched: true, steps: 4 });
  expect(await answers({ total: 1 })).toEqual({ ...none, steps: 4 });
  const at = (offset: number) => ({ offset, line: 1, column: offset + 1 });
  expect(await answers({})).toEqual({ ...none, reason: "absent", position: at(8), steps: 3 });
  expect(await answers({ total: "x" })).toEqual({
    ...none,
    skipped: true,
    reason: "type_mismatch",
    position: at(0),
    steps: 4,
  });
});

test("the numbers of a sample stay as they were sent", async () => {
  const { api } = await createTestTenant();
  const answer = (filter: string) =>
    api.request(PATH, { method: "POST", body: `{"filter":"${filter}","payload":{"id":9007199254740993}}` });
  expect((await answer("payload.id == 9007199254740993")).body.matched).toBe(true);
  expect((await answer("payload.id == 9007199254740992")).body.matched).toBe(false);
});

test("the fields of a sample's event are what was given, else those of a publish that says nothing", async () => {
  const { api } = await createTestTenant();
  const given = { type: "order.paid", source: "shop", schema_version: 3, ordering_key: "k" };
  const matched = async (filter: string, event?: object) =>
    (await api.post(PATH, { filter, ...(event ? { event } : { payload: 1 }) })).body.matched;
  expect(
    await matched('event.type == "order.paid" && event.source == "shop" && event.schema_version == 3', given),
  ).toBe(true);
  expect(await matched('event.ordering_key == "k" && !has(event.idempotency_key)', given)).toBe(true);
  expect(
    await matched('event.occurred_at == "2026-01-31T12:00:00.000Z"', { occurred_at: "2026-01-31T13:00:00+01:00" }),
  ).toBe(true);
  expect(await matched('event.type == "sample" && event.source == "sample" && event.schema_version == 1')).toBe(true);
  expect(await matched('event.occurred_at == event.relayed_at && event.id.startsWith("evt_")')).toBe(true);
});

test("a subscription is tried on a stored event: pattern, filter, and whether it is disabled", async () => {
  const f = await createFiltered(["payload.total > 10"]);
  const { id } = await f.publish({ total: 11 });
  const other = await f.publish({ total: "x" }, { type: "user.made" });
  const read = createApi(await f.tenant.readKey());
  const answer = async (event_id: string) => (await read.post(PATH, { subscription_id: f.ids[0], event_id })).body;
  const path = `/v1/subscriptions/${f.ids[0]}`;
  expect(await answer(id)).toMatchObject({ matched: true, reason: null, steps: 4 });
  expect(await answer(other.id)).toMatchObject({ matched: false, skipped: true, reason: "type_mismatch" });
  await f.api.patch(path, { event_type_pattern: "order.*" });
  expect(await answer(other.id)).toMatchObject({ matched: false, skipped: false, reason: "event_type", steps: 0 });
  await f.api.patch(path, { filter: null });
  expect(await answer(id)).toMatchObject({ matched: true, reason: null, steps: 0 });
  await f.api.post(`${path}/disable`);
  expect(await answer(id)).toMatchObject({ matched: false, reason: "subscription_disabled" });
  expect((await f.api.get("/v1/deliveries")).body.data).toHaveLength(1);
});

test("a stored event's source is known by its name, though it is deleted", async () => {
  const f = await createFiltered(['event.source == "orders"']);
  const { id } = await f.publish({});
  const [source] = (await f.api.get("/v1/sources")).body.data;
  await f.api.delete(`/v1/sources/${source.id}`);
  expect((await f.api.post(PATH, { subscription_id: f.ids[0], event_id: id })).body.matched).toBe(true);
});

test("what cannot be tried is refused, with the field", async () => {
  const f = await createFiltered(["true"]);
  const foreign = await createFiltered(["true"]);
  const { id } = await f.publish({});
  const theirs = await foreign.publish({});
  const refusals: [body: Record<string, unknown>, status: number, path: string | null][] = [
    [{ payload: 1 }, 422, "filter"],
    [{ filter: "true", subscription_id: f.ids[0], payload: 1 }, 422, "subscription_id"],
    [{ filter: "true" }, 422, "event_id"],
    [{ filter: "true", event_id: id, payload: 1 }, 422, "event_id"],
    [{ filter: "true &&", payload: 1 }, 422, "filter"],
    [{ filter: "true", payload: 1, colour: "red" }, 422, "colour"],
    [{ filter: "true", event: { colour: "red" } }, 422, "event.colour"],
    [{ filter: "true", event: { type: "a b" } }, 422, "event.type"],
    [{ subscription_id: foreign.ids[0], payload: 1 }, 422, "subscription_id"],
    [{ subscription_id: "sub_nothing", payload: 1 }, 422, "subscription_id"],
    [{ filter: "true", event_id: theirs.id }, 422, "event_id"],
    [{ filter: "true", event_id: "evt_nothing" }, 422, "event_id"],
    [{ filter: "true", payload: "x".repeat(262_144) }, 413, null],
  ];
  for (const [body, status, path] of refusals) {
    const answer = await f.api.post(PATH, body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
    if (path !== null) expect(answer.body.errors[0].path).toBe(path);
  }
  const twice = '{"filter":"true","event":{"type":"a","type":"b"}}';
  expect(await f.api.request(PATH, { method: "POST", body: twice })).toMatchObject({
    status: 422,
    body: { code: "duplicate_field", errors: [{ path: "event.type" }] },
  });
  expect(await f.api.request(PATH, { method: "POST", body: "{" })).toMatchObject({ status: 400 });
  const publisher = createApi(await f.tenant.publishKey((await f.api.get("/v1/sources")).body.data[0].id));
  expect((await publisher.post(PATH, { filter: "true", payload: 1 })).status).toBe(403);
});

test("an event whose payload is erased can be tried no more", async () => {
  const f = await createFiltered(["true"]);
  const { id } = await f.publish({});
  await f.api.delete(`/v1/events/${id}/payload`);
  expect((await f.api.post(PATH, { subscription_id: f.ids[0], event_id: id })).body.code).toBe("payload_erased");
});
