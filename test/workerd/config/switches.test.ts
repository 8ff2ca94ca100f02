import { expect, test } from "vitest";
import { createTestTenant, type TestTenant } from "../support/api.ts";

async function createSubscription(t: TestTenant, pattern = "*") {
  const { body: endpoint } = await t.api.post("/v1/endpoints", { url: "https://hooks.example.com/in" });
  const subscription = { endpoint_id: endpoint.id, event_type_pattern: pattern };
  return { endpoint, subscription: (await t.api.post("/v1/subscriptions", subscription)).body };
}

/** One after the other, each in a millisecond of its own. */
async function inTurn(work: (() => Promise<unknown>)[]): Promise<void> {
  for (const step of work) {
    const { status } = (await step()) as { status: number };
    expect(status).toBe(200);
    const now = Date.now();
    while (Date.now() === now) await Promise.resolve();
  }
}

test("disabling a subscription shows since when; enabling it leaves when it last was; both twice change nothing", async () => {
  const t = await createTestTenant();
  const { subscription } = await createSubscription(t);
  const path = `/v1/subscriptions/${subscription.id}`;
  const disabled = (await t.api.post(`${path}/disable`)).body;
  expect(disabled).toEqual({
    ...subscription,
    disabled_at: expect.stringMatching(/Z$/),
    last_disabled_at: disabled.disabled_at,
  });
  expect((await t.api.post(`${path}/disable`, {})).body).toEqual(disabled);
  expect((await t.api.patch(path, { event_type_pattern: "a" })).body).toEqual({
    ...disabled,
    event_type_pattern: "a",
  });
  const enabled = (await t.api.post(`${path}/enable`)).body;
  expect(enabled).toEqual({ ...disabled, event_type_pattern: "a", disabled_at: null });
  expect((await t.api.post(`${path}/enable`)).body).toEqual(enabled);
  expect((await t.api.get(path)).body).toEqual(enabled);
});

test("a subscription of nothing and a deleted one cannot be switched, and a body is refused", async () => {
  const t = await createTestTenant();
  const { subscription } = await createSubscription(t);
  for (const action of ["disable", "enable"]) {
    const path = `/v1/subscriptions/${subscription.id}/${action}`;
    expect((await t.api.post(path, { reason: "x" })).status).toBe(422);
    expect((await t.api.post(`/v1/subscriptions/sub_0000000000000000/${action}`)).status).toBe(404);
  }
  await t.api.delete(`/v1/subscriptions/${subscription.id}`);
  expect((await t.api.post(`/v1/subscriptions/${subscription.id}/disable`)).status).toBe(404);
});

test("a disabled subscription matches nothing from when it was answered until it is enabled", async () => {
  const t = await createTestTenant();
  await t.api.post("/v1/sources", { name: "orders" });
  const { endpoint, subscription } = await createSubscription(t);
  const publish = async () => (await t.api.post("/v1/events", { type: "a.b", source: "orders", payload: 1 })).body;
  await t.api.post(`/v1/endpoints/${endpoint.id}/pause`);
  const before = await publish();
  expect(before.delivery_count).toBe(1);
  await t.api.post(`/v1/subscriptions/${subscription.id}/disable`);
  expect(await publish()).toMatchObject({ delivery_count: 0, deliveries: [] });
  expect((await t.api.get(`/v1/deliveries/${before.deliveries[0].id}`)).body.status).toBe("pending");
  await t.api.post(`/v1/subscriptions/${subscription.id}/enable`);
  expect((await publish()).delivery_count).toBe(1);
  await t.api.delete(`/v1/endpoints/${endpoint.id}`);
});

test("of two subscriptions that match, the other carries the event while the older is disabled", async () => {
  const t = await createTestTenant();
  await t.api.post("/v1/sources", { name: "orders" });
  const { endpoint, subscription: older } = await createSubscription(t);
  await t.api.post(`/v1/endpoints/${endpoint.id}/pause`);
  const second = { endpoint_id: endpoint.id, event_type_pattern: "a.*" };
  const { body: younger } = await t.api.post("/v1/subscriptions", second);
  await t.api.post(`/v1/subscriptions/${older.id}/disable`);
  const { body } = await t.api.post("/v1/events", { type: "a.b", source: "orders", payload: 1 });
  expect(body.deliveries).toEqual([expect.objectContaining({ subscription_id: younger.id })]);
  await t.api.delete(`/v1/endpoints/${endpoint.id}`);
});

test.each(["endpoints", "subscriptions"] as const)(
  "%s that were disabled after a moment are found, enabled again or not, page by page",
  async (noun) => {
    const t = await createTestTenant();
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) {
      const { endpoint, subscription } = await createSubscription(t, `type.${n}`);
      ids.push(noun === "endpoints" ? endpoint.id : subscription.id);
    }
    const act = (n: number, action: string) => () => t.api.post(`/v1/${noun}/${ids[n]}/${action}`);
    const lastDisabledAt = async (n: number) => (await t.api.get(`/v1/${noun}/${ids[n]}`)).body.last_disabled_at;
    await inTurn([act(1, "disable"), act(4, "disable"), act(2, "disable"), act(4, "enable"), act(5, "disable")]);
    const after = async (time: string, limit = 50) => {
      const found: string[] = [];
      for (let cursor: string | null = ""; cursor !== null;) {
        const query: string = `disabled_after=${time}&limit=${limit}${cursor && `&cursor=${cursor}`}`;
        const { body } = await t.api.get(`/v1/${noun}?${query}`);
        found.push(...body.data.map(({ id }: { id: string }) => id));
        cursor = body.next_cursor;
      }
      return found.map((id) => ids.indexOf(id)).toSorted();
    };
    expect(await after("2026-01-01T00:00:00Z")).toEqual([1, 2, 4, 5]);
    expect(await after("2026-01-01T00:00:00Z", 1)).toEqual([1, 2, 4, 5]);
    // After, and not at.
    expect(await after(await lastDisabledAt(1))).toEqual([2, 4, 5]);
    expect(await after(await lastDisabledAt(4))).toEqual([2, 5]);
    expect(await after(await lastDisabledAt(5))).toEqual([]);
    expect((await t.api.get(`/v1/${noun}?disabled_after=yesterday`)).body).toMatchObject({
      code: "validation_failed",
      errors: [{ path: "disabled_after" }],
    });
  },
);
