import { expect, test } from "vitest";
import { createApi, operatorToken } from "./support/api.ts";
import { createScene } from "./support/scene.ts";
import { attempt } from "./support/worker.ts";

/** The API only ever gains fields: one may be added here, none taken away. */
const FIELDS = {
  source:
    "allowed_event_types created_at delivery_key_previous_valid_until delivery_key_version id name previous_valid_until signing_key signing_key_version",
  apiKey: "created_at id key name prefix scope source_id",
  endpoint:
    "concurrency_cap created_at disable_after_failing_seconds disabled_at disabled_reason failing_since headers id " +
    "last_disabled_at max_head_hold_seconds name on_exhausted ordering_mode paused_at payload_format quarantined_at rate_limit_per_second " +
    "retry_policy revision secret source_signatures state timeout_ms url",
  health:
    "consecutive_failures disables_at failing_since last_error_class last_failure_at last_status_code last_success_at p50_ms " +
    "p95_ms state success_rate why window",
  subscription:
    "created_at disabled_at endpoint_id entitlement_scope event_type_pattern filter filter_failed_at filter_failed_event_id " +
    "filter_failed_reason id last_disabled_at retry_policy schema_version",
  subscriptionTest: "matched position reason skipped steps",
  tenant: "created_at endpoint_quota header_prefix id name plan require_registered_types status suspended_at",
  webhookKeys: "keys source_id",
  webhookKey: "public_key signs_until version",
  rotated: "active_from active_until endpoint_id id previous secret",
  published: "deliveries delivery_count duplicate id relayed_at skipped skipped_count",
  publishedDelivery: "endpoint_id id status subscription_id",
  event:
    "cause_event_id content_encoding content_type created_at delivery_count dispatched_at expires_at id idempotency_key " +
    "occurred_at ordering_key payload_erased_at payload_ref payload_sha256 payload_size relay_region relayed_at schema_version " +
    "skipped skipped_count source_id type variants",
  delivery:
    "attempt_count attempts created_at endpoint_id event_id expires_at filter_match_ms filter_match_steps final_outcome id " +
    "idempotency_key last_answer_run last_attempt_at last_error_class last_status_code next_attempt_at relay_region replay_of replayed_as " +
    "retry_policy scheduled_at schema_version status subscription_id terminal_at",
  attempt:
    "attempt_number delivery_id endpoint_revision error_class id latency_ms outcome_class partner_request_id relay_region " +
    "requested_at responded_at response_body_sha256 response_headers_json same_answer_run signing_secret_ids status_code worker_id",
  lane: "depth heads mode quarantined_at state",
  eventType: "created_at name required_scope versions",
  eventTypeVersion: "created_at json_schema retired_at schema_version",
  problem: "code detail errors request_id status title type",
};

const fieldsOf = (body: object) => Object.keys(body).toSorted().join(" ");

test("no answer has lost a field", async () => {
  const scene = await createScene();
  const { api } = scene.tenant;
  const seen: Partial<Record<keyof typeof FIELDS, object>> = {};
  seen.tenant = (await createApi(operatorToken).get(`/v1/tenants/${scene.tenant.id}`)).body;
  seen.source = (await api.post("/v1/sources", { name: "another" })).body;
  seen.apiKey = (await api.post("/v1/api-keys", { scope: "read" })).body;
  seen.endpoint = (await api.post("/v1/endpoints", { url: "https://consumer.example/" })).body;
  seen.subscription = (await api.get("/v1/subscriptions")).body.data[0];
  seen.subscriptionTest = (await api.post("/v1/subscriptions/test", { filter: "true", payload: 1 })).body;
  seen.rotated = (await api.post(`/v1/endpoints/${scene.endpointId}/secrets/rotate`)).body;
  seen.webhookKeys = (await api.get(`/.well-known/webhook-keys/${(seen.source as { id: string }).id}`)).body;
  seen.webhookKey = (seen.webhookKeys as { keys: object[] }).keys[0]!;
  seen.lane = (await api.get(`/v1/endpoints/${scene.endpointId}/lane`)).body;
  seen.health = (await api.get(`/v1/endpoints/${scene.endpointId}/health`)).body;
  const published = await api.post("/v1/events", { type: "a.b", source: "orders", payload: 1 });
  seen.published = published.body;
  seen.publishedDelivery = published.body.deliveries[0];
  seen.event = (await api.get(`/v1/events/${published.body.id}`)).body;
  const delivery = await scene.publishOne();
  await attempt(scene.deps, scene.context, delivery.call(1));
  const read = await delivery.read();
  seen.delivery = read;
  seen.attempt = read.attempts[0];
  seen.eventType = (await api.post("/v1/event-types", { name: "a.b" })).body;
  seen.eventTypeVersion = (seen.eventType as any).versions[0];
  seen.problem = (await api.post("/v1/sources", { name: "" })).body;
  for (const [noun, fields] of Object.entries(FIELDS)) {
    expect(fieldsOf(seen[noun as keyof typeof FIELDS]!), noun).toBe(fields);
  }
});
