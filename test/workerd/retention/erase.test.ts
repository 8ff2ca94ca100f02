import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { deliver } from "../../../src/app/deliver/deliver.ts";
import { eraseEventPayload } from "../../../src/app/event/erase-payload.ts";
import type { Principal } from "../../../src/app/principal.ts";
import { splitPayloadRef } from "../../../src/core/payload-ref.ts";
import { createLaneFixture } from "../lane/support.ts";
import { createScene, gate, type Scene } from "../support/scene.ts";
import { attempt, createTestContext, shardDeps } from "../support/worker.ts";

const bucket = (env as Env).PAYLOADS;
const erase = (scene: Scene, eventId: string) => scene.tenant.api.delete(`/v1/events/${eventId}/payload`);
const read = async (scene: Scene, eventId: string) => (await scene.tenant.api.get(`/v1/events/${eventId}`)).body;
const adminOf = (scene: Scene): Principal => ({ tenantId: scene.tenant.id, scope: "admin", sourceId: null });
const isZero = (bytes: Uint8Array) => bytes.every((byte) => byte === 0);

/** Events of one batch, which share an object: what was published as each, and what the object holds of it now. */
async function publishBatch(scene: Scene, payloads: unknown[], fields: Record<string, unknown>[] = []) {
  const events = payloads.map((payload, i) => ({ type: "order.created", source: "orders", payload, ...fields[i] }));
  const { body } = await scene.tenant.api.post("/v1/events/batch", { events });
  const ids: string[] = body.results.map(({ id }: { id: string }) => id);
  return {
    ids,
    results: body.results,
    async stored(i: number): Promise<Uint8Array> {
      const { payload_ref: ref, payload_size: size } = await read(scene, ids[i]!);
      const [key, offset] = splitPayloadRef(ref);
      const object = await bucket.get(key, { range: { offset, length: size } });
      return new Uint8Array(await object!.arrayBuffer());
    },
  };
}

test("an erased payload is gone from the store and from the API; its hash and size stay, and so do its neighbours", async () => {
  const scene = await createScene();
  const batch = await publishBatch(scene, [{ n: 1 }, { name: "Ada" }, { n: 3 }]);
  const before = await read(scene, batch.ids[1]!);
  expect(before.payload_erased_at).toBeNull();
  expect((await erase(scene, batch.ids[1]!)).status).toBe(204);

  const answer = await scene.tenant.api.get(`/v1/events/${batch.ids[1]}/payload`);
  expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
  const after = await read(scene, batch.ids[1]!);
  expect(after.payload_erased_at).toEqual(expect.any(String));
  expect({ ...after, payload_erased_at: null }).toEqual(before);
  expect(isZero(await batch.stored(1))).toBe(true);
  for (const i of [0, 2]) {
    expect(new TextDecoder().decode(await batch.stored(i))).toBe(JSON.stringify({ n: i + 1 }));
    const { body } = await scene.tenant.api.get(`/v1/events/${batch.ids[i]}/payload`);
    expect(body).toEqual({ n: i + 1 });
  }
  // Again: the same answer, and the same moment.
  expect((await erase(scene, batch.ids[1]!)).status).toBe(204);
  expect(await read(scene, batch.ids[1]!)).toEqual(after);
});

test("an empty payload can be erased too, and so can one whose object is gone", async () => {
  const scene = await createScene();
  const raw = await scene.tenant.api.request("/v1/events/raw?type=a.b&source=orders", { method: "POST", body: "" });
  const { ids } = await publishBatch(scene, [1]);
  await bucket.delete(splitPayloadRef((await read(scene, ids[0]!)).payload_ref)[0]);
  for (const id of [raw.body.id, ids[0]]) {
    expect((await erase(scene, id)).status).toBe(204);
    expect((await read(scene, id)).payload_erased_at).not.toBeNull();
    expect((await scene.tenant.api.get(`/v1/events/${id}/payload`)).status).toBe(404);
  }
});

test("pending deliveries end without an attempt, ended ones stay, and neither can be sent again", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const ended = await scene.publishOne();
  await attempt(scene.deps, scene.context, ended.call(1));
  const before = await ended.read();
  for (const { ref } of [delivery, ended]) await erase(scene, ref.eventId);
  expect(await delivery.read()).toMatchObject({
    status: "failed",
    final_outcome: "payload_missing",
    attempts: [],
    terminal_at: (await read(scene, delivery.ref.eventId)).payload_erased_at,
  });
  expect(await ended.read()).toEqual(before);
  // A doorbell that was on its way finds nothing to do.
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect((await delivery.read()).attempts).toEqual([]);
  for (const { id } of [delivery, ended]) {
    const replay = await scene.tenant.api.post(`/v1/deliveries/${id}/replay`);
    expect(replay).toMatchObject({ status: 409, body: { code: "payload_erased" } });
    expect((await scene.tenant.api.post(`/v1/deliveries/${id}/retry`)).status).toBe(409);
  }
  expect((await scene.tenant.api.get("/v1/deliveries")).body.data).toHaveLength(2);
});

test.each([
  [200, "succeeded", "delivered"],
  [503, "failed", "payload_missing"],
])("an attempt in flight ends and is recorded; answered %i, the delivery is %s", async (answer, status, outcome) => {
  const scene = await createScene({ retry_policy: { delays_seconds: [0] } });
  const delivery = await scene.publishOne();
  const [sent, answered] = [gate(), gate()];
  const deps: Scene["deps"] = {
    ...scene.deps,
    async send() {
      sent.open();
      await answered.opened;
      return { wire: { kind: "response", status: answer, bodyComplete: true }, bodySha256: null, headers: [] };
    },
  };
  const work = attempt(deps, scene.context, delivery.call(1));
  await sent.opened;
  expect((await erase(scene, delivery.ref.eventId)).status).toBe(204);
  expect(await delivery.read()).toMatchObject({ status: "processing", final_outcome: null });
  answered.open();
  await work;
  await attempt(deps, scene.context, delivery.call(2));
  expect(await delivery.read()).toMatchObject({
    status,
    final_outcome: outcome,
    attempts: [{ status_code: answer }],
  });
});

test("what was read before an erasure is not sent after it: the claim finds nothing to claim", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  let sends = 0;
  const deps: Scene["deps"] = {
    ...scene.deps,
    async claimDeliveries(claims, now) {
      await erase(scene, delivery.ref.eventId);
      return scene.deps.claimDeliveries(claims, now);
    },
    send: async () => {
      sends++;
      throw new Error("nothing may be sent");
    },
  };
  await deliver(deps, [delivery.call(1)]);
  await scene.context.settled();
  expect(sends).toBe(0);
  expect(await delivery.read()).toMatchObject({ status: "failed", final_outcome: "payload_missing", attempts: [] });
});

test("a lane goes on behind what was erased, and a blocked lane's erased head can only be skipped", async () => {
  const fixture = await createLaneFixture({ on_exhausted: "block" });
  fixture.answer = ({ name }) => new Response(null, { status: name === "k/1" ? 400 : 200 });
  const [first, dead] = await fixture.publishAll(["k/0", "k/1", "k/2"]);
  const eventOf = (id: string) => `evt_${id.slice(4, 30)}`;
  const woken: object[] = [];
  const deps = {
    ...shardDeps(fixture.tenant, fixture.context),
    wakeLane: (lane: object) => void woken.push(lane),
  };
  await eraseEventPayload(deps, adminOf(fixture), eventOf(first!));
  expect(woken).toEqual([{ tenantId: fixture.tenant.id, endpointId: fixture.endpointId, generation: 0 }]);
  await fixture.createLane().run();
  expect(fixture.sent.map(({ name }) => name)).toEqual(["k/1"]);

  await erase(fixture, eventOf(dead!));
  const replay = await fixture.tenant.api.post(`/v1/deliveries/${dead}/replay`);
  expect(replay).toMatchObject({ status: 409, body: { code: "payload_erased" } });
  await fixture.tenant.api.post(`/v1/endpoints/${fixture.endpointId}/lane/skip`, { delivery_id: dead });
  await fixture.createLane("b").run();
  await expect.poll(() => fixture.openCount()).toBe(0);
});

test("events of one object erased at once are all erased: none brings back another's bytes", async () => {
  const scene = await createScene();
  const batch = await publishBatch(scene, ["a", "b", "c", "d"]);
  const answers = await Promise.all(batch.ids.slice(0, 3).map((id) => erase(scene, id)));
  expect(answers.map(({ status }) => status)).toEqual([204, 204, 204]);
  for (const i of [0, 1, 2]) expect(isZero(await batch.stored(i))).toBe(true);
  expect(new TextDecoder().decode(await batch.stored(3))).toBe('"d"');
});

test("an erasure that read the object before another wrote it writes nothing of what it read", async () => {
  const scene = await createScene();
  const batch = await publishBatch(scene, ["a", "b"]);
  let gets = 0;
  const puts: boolean[] = [];
  const slow = {
    async get(key: string) {
      const object = await bucket.get(key);
      // The other erasure is done while this one holds the old bytes.
      if (gets++ === 0) await erase(scene, batch.ids[1]!);
      return object;
    },
    async put(...args: Parameters<R2Bucket["put"]>) {
      const written = await bucket.put(...args);
      puts.push((written as R2Object | null) !== null);
      return written;
    },
  } as unknown as R2Bucket;
  const bindings = { ...env, PAYLOADS: slow } as Env;
  const deps = { ...shardDeps(scene.tenant, createTestContext(), bindings), sleep: async () => {} };
  await eraseEventPayload(deps, adminOf(scene), batch.ids[0]!);
  expect(puts).toEqual([false, true]);
  for (const i of [0, 1]) expect(isZero(await batch.stored(i))).toBe(true);
});

test("an erasure that dies between the bytes and the row shows and sends nothing, and is finished by doing it again", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const { eventId } = delivery.ref;
  const dies = { ...shardDeps(scene.tenant, scene.context), markErasedPart: () => Promise.reject(new Error("died")) };
  await expect(eraseEventPayload(dies, adminOf(scene), eventId)).rejects.toThrow("died");
  // The ledger does not call it erased yet; nobody gets the zeros either.
  expect((await read(scene, eventId)).payload_erased_at).toBeNull();
  expect((await scene.tenant.api.get(`/v1/events/${eventId}/payload`)).status).toBe(404);
  await attempt(scene.deps, scene.context, delivery.call(1));
  expect(await delivery.read()).toMatchObject({ status: "failed", final_outcome: "payload_missing", attempts: [] });
  expect((await erase(scene, eventId)).status).toBe(204);
  expect((await read(scene, eventId)).payload_erased_at).not.toBeNull();
});

test("an erasure that the store does not confirm is 503, and nothing is said to be erased", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const pauses: number[] = [];
  const deps = {
    ...shardDeps(scene.tenant, scene.context),
    zeroPayload: () => Promise.reject(new Error("put: Reduce your concurrent request rate (10058)")),
    sleep: async (ms: number) => void pauses.push(ms),
  };
  const erasing = eraseEventPayload(deps, adminOf(scene), delivery.ref.eventId);
  await expect(erasing).rejects.toMatchObject({ code: "unavailable" });
  expect(pauses).toHaveLength(5);
  expect((await read(scene, delivery.ref.eventId)).payload_erased_at).toBeNull();
  expect((await delivery.read()).status).toBe("pending");
});

test("each of more pending deliveries than one statement ends has ended when the erasure answers", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200)";
  const id = "'ep_erased' || printf('%010d', n.i)";
  await scene.db.batch(
    [
      `insert into endpoint (tenant_id, id, url, retry_policy_id, created_at)
       ${numbers} select e.tenant_id, ${id}, e.url, e.retry_policy_id, 0
       from n cross join endpoint e where e.id = ?2 and e.tenant_id = ?1`,
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
         next_attempt_at, expires_at)
       ${numbers} select d.tenant_id, d.event_id, ${id}, d.subscription_id, 'pending', d.retry_policy_id, 0,
         d.expires_at, d.expires_at from n cross join delivery d where d.endpoint_id = ?2 and d.tenant_id = ?1`,
    ].map((sql) => scene.db.prepare(sql).bind(scene.tenant.id, scene.endpointId)),
  );
  await erase(scene, delivery.ref.eventId);
  const { results } = await scene.db
    .prepare("select status, final_outcome, count(*) as n from delivery where tenant_id = ? group by 1, 2")
    .bind(scene.tenant.id)
    .all();
  expect(results).toEqual([{ status: "failed", final_outcome: "payload_missing", n: 1_201 }]);
});

test("a duplicate of an erased event is still its duplicate, and leaves no bytes behind, alone or in a batch", async () => {
  const scene = await createScene();
  const keyed = { idempotency_key: "once" };
  const first = await publishBatch(scene, ["secret"], [keyed]);
  const { payload_ref: ref } = await read(scene, first.ids[0]!);
  const prefix = ref.slice(0, ref.lastIndexOf("/") + 1);
  const again = await publishBatch(scene, ["secret", "other"], [keyed]);
  expect(again.results).toMatchObject([{ id: first.ids[0], duplicate: true }, { duplicate: false }]);
  await erase(scene, first.ids[0]!);
  const third = await publishBatch(scene, ["secret"], [keyed]);
  expect(third.results).toMatchObject([{ id: first.ids[0], duplicate: true }]);
  await expect
    .poll(async () => {
      const { objects } = await bucket.list({ prefix });
      const texts = await Promise.all(objects.map(async ({ key }) => (await bucket.get(key))!.text()));
      return texts.map((text) => text.replaceAll("\0", "")).toSorted();
    })
    .toEqual(["", '"other"']);
});

test("an event that has expired cannot be erased any more: 404", async () => {
  const scene = await createScene();
  const { ids } = await publishBatch(scene, [1]);
  await scene.db.prepare("update event set expires_at = 1 where id = ?").bind(ids[0]).run();
  expect((await erase(scene, ids[0]!)).status).toBe(404);
});
