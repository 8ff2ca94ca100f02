import { expect, test } from "vitest";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import { answered, claim, report } from "../support/closing.ts";
import { createScene, type Scene } from "../support/scene.ts";

test("recording an attempt twice changes nothing the second time", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await claim(scene, delivery, 1, "a");
  await recordAttempt(scene.deps, report(delivery, 1, "a", answered(500)));
  const once = await delivery.read();
  await recordAttempt(scene.deps, report(delivery, 1, "a", answered(200)));
  expect(await delivery.read()).toMatchObject({ attempts: once.attempts });
  expect(once).toMatchObject({ status: "pending", attempts: [{ status_code: 500, latency_ms: 5 }] });
});

test("a stale token closes its own attempt and moves nothing", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await claim(scene, delivery, 1, "old");
  await recordAttempt(scene.deps, report(delivery, 1, "old", { kind: "abandoned" }));
  await claim(scene, delivery, 2, "new", Date.now() + 10_000);
  await recordAttempt(scene.deps, report(delivery, 1, "old", answered(400)));
  expect(await delivery.read()).toMatchObject({
    status: "processing",
    attempts: [
      { attempt_number: 1, status_code: 400, outcome_class: "rejected" },
      { attempt_number: 2, outcome_class: null },
    ],
  });
});

test("a late success ends a delivery that is still open, also while a later attempt is under way", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await claim(scene, delivery, 1, "old");
  await recordAttempt(scene.deps, report(delivery, 1, "old", { kind: "abandoned" }));
  await claim(scene, delivery, 2, "new", Date.now() + 10_000);
  await recordAttempt(scene.deps, report(delivery, 1, "old", answered(200)));
  const ended = await delivery.read();
  expect(ended).toMatchObject({
    status: "succeeded",
    final_outcome: "delivered",
    // Its process may be dead: it is not left open.
    attempts: [{ status_code: 200 }, { outcome_class: "unreachable", error_class: "abandoned" }],
  });
  await recordAttempt(scene.deps, report(delivery, 2, "new", answered(500)));
  const after = await delivery.read();
  expect(after).toMatchObject({ status: "succeeded", attempts: [{ status_code: 200 }, { status_code: 500 }] });
  expect(after.terminal_at).toBe(ended.terminal_at);
});

test("an abandoned attempt takes the true outcome when it comes; nothing else replaces a closed attempt", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await claim(scene, delivery, 1, "a");
  await recordAttempt(scene.deps, report(delivery, 1, "a", { kind: "abandoned" }));
  expect(await delivery.read()).toMatchObject({
    status: "pending",
    attempts: [{ outcome_class: "unreachable", error_class: "abandoned" }],
  });
  await recordAttempt(scene.deps, report(delivery, 1, "a", answered(503)));
  await recordAttempt(scene.deps, report(delivery, 1, "a", { kind: "abandoned" }));
  expect((await delivery.read()).attempts).toMatchObject([{ outcome_class: "transient", status_code: 503 }]);
});

test("a 410 disables the endpoint it came from, unless it has another URL by now", async () => {
  const [renamed, moved] = [await createScene(), await createScene()];
  for (const scene of [renamed, moved]) {
    const delivery = await scene.publishOne();
    await claim(scene, delivery, 1, "a");
    const change = scene === moved ? { url: "https://moved.example/" } : { name: "renamed" };
    await scene.tenant.api.patch(`/v1/endpoints/${scene.endpointId}`, change);
    await recordAttempt(scene.deps, report(delivery, 1, "a", answered(410)));
    expect(await delivery.read()).toMatchObject({
      status: "dead_letter",
      final_outcome: "gone",
      last_error_class: "gone",
    });
  }
  const read = async (scene: Scene) => (await scene.tenant.api.get(`/v1/endpoints/${scene.endpointId}`)).body;
  expect(await read(renamed)).toMatchObject({ state: "disabled", disabled_reason: "gone" });
  expect(await read(moved)).toMatchObject({ state: "active", disabled_at: null });
});

test("what was under way when its endpoint was deleted ends with it, and is not tried again", async () => {
  const scene = await createScene();
  const [fails, succeeds] = [await scene.publishOne(), await scene.publishOne()];
  for (const delivery of [fails, succeeds]) await claim(scene, delivery, 1, delivery.id);
  await scene.tenant.api.delete(`/v1/endpoints/${scene.endpointId}`);
  await recordAttempt(scene.deps, report(fails, 1, fails.id, answered(500)));
  await recordAttempt(scene.deps, report(succeeds, 1, succeeds.id, answered(200)));
  expect(await fails.read()).toMatchObject({
    status: "failed",
    final_outcome: "endpoint_deleted",
    next_attempt_at: null,
    attempts: [{ status_code: 500 }],
  });
  expect(await succeeds.read()).toMatchObject({ status: "succeeded", final_outcome: "delivered" });
});

test("a dead letter stands in the view of that name, with its public ids, until it expires", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await claim(scene, delivery, 1, "a");
  await recordAttempt(scene.deps, report(delivery, 1, "a", answered(400)));
  const replay = await scene.tenant.api.post(`/v1/deliveries/${delivery.id}/replay`);
  const dead = () => scene.db.prepare("select * from dead_letter where tenant_id = ?").bind(scene.tenant.id).all();
  expect((await dead()).results).toMatchObject([
    { delivery_id: delivery.id, final_outcome: "rejected", replayed_as: replay.body.id },
  ]);
  const view = await scene.db
    .prepare("select delivery_id, webhook_id, replay_no from delivery_view where tenant_id = ? order by replay_no")
    .bind(scene.tenant.id)
    .all();
  expect(view.results).toMatchObject([
    { delivery_id: delivery.id, webhook_id: replay.body.idempotency_key },
    { delivery_id: replay.body.id, webhook_id: replay.body.idempotency_key },
  ]);
  await scene.db.prepare("update delivery set expires_at = 1 where tenant_id = ?").bind(scene.tenant.id).run();
  expect((await dead()).results).toEqual([]);
  expect((await scene.tenant.api.get(`/v1/deliveries/${delivery.id}`)).status).toBe(404);
});
