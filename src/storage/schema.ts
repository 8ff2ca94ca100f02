/**
 * The tables of `migrations/`, as types and for ordinary queries. A test holds the two together. What this language
 * cannot say (WITHOUT ROWID, checks, views) is in the migrations alone.
 */
import { desc, sql } from "drizzle-orm";
import {
  blob,
  foreignKey,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

export const tenantDirectory = sqliteTable(
  "tenant_directory",
  {
    tenantId: text("tenant_id").notNull(),
    shard: text("shard").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId] }), index("tenant_directory_created").on(t.createdAt, t.tenantId)],
);

export const sourceDirectory = sqliteTable(
  "source_directory",
  {
    sourceId: text("source_id").notNull(),
    tenantId: text("tenant_id").notNull(),
  },
  (t) => [primaryKey({ columns: [t.sourceId] })],
);

export const tenant = sqliteTable(
  "tenant",
  {
    id: text("id").notNull(),
    name: text("name").notNull(),
    plan: text("plan").notNull().default("free"),
    status: text("status").notNull().default("active"),
    endpointQuota: integer("endpoint_quota"),
    shard: text("shard").notNull(),
    revision: integer("revision").notNull().default(1),
    createdAt: integer("created_at").notNull(),
    deletedAt: integer("deleted_at"),
    suspendedAt: integer("suspended_at"),
    resumedAt: integer("resumed_at"),
    requireRegisteredTypes: integer("require_registered_types", { mode: "boolean" }).notNull().default(false),
    headerPrefix: text("header_prefix"),
  },
  (t) => [primaryKey({ columns: [t.id] })],
);

export const source = sqliteTable(
  "source",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    allowedEventTypes: text("allowed_event_types").notNull().default('["*"]'),
    signingKeyVersion: integer("signing_key_version").notNull().default(1),
    signingKey: blob("signing_key", { mode: "buffer" }),
    signingKeyPrevious: blob("signing_key_previous", { mode: "buffer" }),
    previousValidUntil: integer("previous_valid_until"),
    deliveryKey: blob("delivery_key", { mode: "buffer" }),
    deliveryKeyPrevious: blob("delivery_key_previous", { mode: "buffer" }),
    deliveryKeyPreviousValidUntil: integer("delivery_key_previous_valid_until"),
    createdAt: integer("created_at").notNull(),
    deletedAt: integer("deleted_at"),
    deliveryKeyVersion: integer("delivery_key_version").notNull().default(0),
    deliveryPublicKey: blob("delivery_public_key", { mode: "buffer" }),
    deliveryPublicKeyPrevious: blob("delivery_public_key_previous", { mode: "buffer" }),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId], foreignColumns: [tenant.id] }),
    uniqueIndex("source_name")
      .on(t.tenantId, t.name)
      .where(sql`deleted_at is null`),
  ],
);

export const apiKey = sqliteTable(
  "api_key",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    keyHash: blob("key_hash", { mode: "buffer" }).notNull(),
    prefix: text("prefix").notNull(),
    scope: text("scope").notNull(),
    sourceId: text("source_id"),
    name: text("name"),
    createdAt: integer("created_at").notNull(),
    revokedAt: integer("revoked_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId], foreignColumns: [tenant.id] }),
    foreignKey({ columns: [t.tenantId, t.sourceId], foreignColumns: [source.tenantId, source.id] }),
    uniqueIndex("api_key_hash").on(t.keyHash),
  ],
);

export const retryPolicy = sqliteTable(
  "retry_policy",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    policy: text("policy").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId], foreignColumns: [tenant.id] }),
  ],
);

export const endpoint = sqliteTable(
  "endpoint",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    url: text("url").notNull(),
    name: text("name"),
    revision: integer("revision").notNull().default(1),
    orderingMode: text("ordering_mode").notNull().default("unordered"),
    route: text("route").notNull().default("queue"),
    laneGeneration: integer("lane_generation").notNull().default(0),
    concurrencyCap: integer("concurrency_cap"),
    rateLimitPerSecond: real("rate_limit_per_second"),
    maxHeadHoldSeconds: integer("max_head_hold_seconds"),
    retryPolicyId: text("retry_policy_id").notNull(),
    payloadFormat: text("payload_format").notNull().default("envelope"),
    headers: text("headers").notNull().default("{}"),
    timeoutMs: integer("timeout_ms").notNull().default(15000),
    onExhausted: text("on_exhausted").notNull().default("advance"),
    pausedAt: integer("paused_at"),
    resumedAt: integer("resumed_at"),
    disabledAt: integer("disabled_at"),
    lastDisabledAt: integer("last_disabled_at"),
    disabledReason: text("disabled_reason"),
    createdAt: integer("created_at").notNull(),
    deletedAt: integer("deleted_at"),
    failingSince: integer("failing_since"),
    failureNotedAt: integer("failure_noted_at"),
    disableAfterFailingSeconds: integer("disable_after_failing_seconds").default(432000),
    failingToldSince: integer("failing_told_since"),
    quarantinedAt: integer("quarantined_at"),
    sourceSignatures: integer("source_signatures", { mode: "boolean" }).notNull().default(false),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId], foreignColumns: [tenant.id] }),
    foreignKey({ columns: [t.tenantId, t.retryPolicyId], foreignColumns: [retryPolicy.tenantId, retryPolicy.id] }),
    index("endpoint_living")
      .on(t.tenantId, t.createdAt, t.id)
      .where(sql`deleted_at is null`),
    index("endpoint_disabled")
      .on(t.tenantId, t.lastDisabledAt)
      .where(sql`last_disabled_at is not null and deleted_at is null`),
  ],
);

export const signingSecret = sqliteTable(
  "signing_secret",
  {
    tenantId: text("tenant_id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    slot: integer("slot").notNull(),
    id: text("id").notNull(),
    wrappedKey: blob("wrapped_key", { mode: "buffer" }).notNull(),
    activeFrom: integer("active_from").notNull(),
    activeUntil: integer("active_until"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.endpointId, t.slot] }),
    foreignKey({ columns: [t.tenantId, t.endpointId], foreignColumns: [endpoint.tenantId, endpoint.id] }),
  ],
);

export const subscription = sqliteTable(
  "subscription",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    eventTypePattern: text("event_type_pattern").notNull(),
    filter: text("filter"),
    schemaVersion: integer("schema_version"),
    entitlementScope: text("entitlement_scope"),
    retryPolicy: text("retry_policy"),
    retryPolicyId: text("retry_policy_id"),
    createdAt: integer("created_at").notNull(),
    disabledAt: integer("disabled_at"),
    lastDisabledAt: integer("last_disabled_at"),
    deletedAt: integer("deleted_at"),
    filterFailedAt: integer("filter_failed_at"),
    filterFailedReason: text("filter_failed_reason"),
    filterFailedEventId: text("filter_failed_event_id"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId, t.endpointId], foreignColumns: [endpoint.tenantId, endpoint.id] }),
    foreignKey({ columns: [t.tenantId, t.retryPolicyId], foreignColumns: [retryPolicy.tenantId, retryPolicy.id] }),
    index("subscription_living")
      .on(t.tenantId, t.createdAt, t.id)
      .where(sql`deleted_at is null`),
    index("subscription_operational")
      .on(t.tenantId, t.eventTypePattern)
      .where(
        sql`deleted_at is null and disabled_at is null and event_type_pattern >= 'hooklane.' and event_type_pattern < 'hooklane/'`,
      ),
    index("subscription_disabled")
      .on(t.tenantId, t.lastDisabledAt)
      .where(sql`last_disabled_at is not null and deleted_at is null`),
    index("subscription_endpoint").on(t.endpointId, t.deletedAt, t.createdAt),
  ],
);

export const eventType = sqliteTable(
  "event_type",
  {
    tenantId: text("tenant_id").notNull(),
    name: text("name").notNull(),
    schemaVersion: integer("schema_version").notNull(),
    requiredScope: text("required_scope"),
    jsonSchema: text("json_schema"),
    retiredAt: integer("retired_at"),
    createdAt: integer("created_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.name, t.schemaVersion] }),
    foreignKey({ columns: [t.tenantId], foreignColumns: [tenant.id] }),
  ],
);

export const event = sqliteTable(
  "event",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    sourceId: text("source_id").notNull(),
    type: text("type").notNull(),
    schemaVersion: integer("schema_version").notNull().default(1),
    orderingKey: text("ordering_key"),
    idempotencyKey: text("idempotency_key"),
    payloadRef: text("payload_ref").notNull(),
    payloadSha256: blob("payload_sha256", { mode: "buffer" }).notNull(),
    payloadSize: integer("payload_size").notNull(),
    payloadIsJson: integer("payload_is_json").notNull(),
    contentType: text("content_type").notNull(),
    contentEncoding: text("content_encoding"),
    occurredAt: integer("occurred_at").notNull(),
    relayedAt: integer("relayed_at").notNull(),
    causeEventId: text("cause_event_id"),
    relayRegion: text("relay_region"),
    expiresAt: integer("expires_at").notNull(),
    dispatchedAt: integer("dispatched_at"),
    deliveryCount: integer("delivery_count").notNull().default(0),
    hopCount: integer("hop_count").notNull().default(0),
    payloadErasedAt: integer("payload_erased_at"),
    variants: text("variants"),
    skippedCount: integer("skipped_count").notNull().default(0),
    skipped: text("skipped"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId, t.sourceId], foreignColumns: [source.tenantId, source.id] }),
    uniqueIndex("event_idempotency")
      .on(t.sourceId, t.idempotencyKey)
      .where(sql`idempotency_key is not null`),
  ],
);

export const fanOut = sqliteTable(
  "fan_out",
  {
    tenantId: text("tenant_id").notNull(),
    eventId: text("event_id").notNull(),
    part: integer("part").notNull(),
    deliveries: text("deliveries").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.eventId, t.part] }),
    foreignKey({ columns: [t.tenantId, t.eventId], foreignColumns: [event.tenantId, event.id] }),
  ],
);

export const delivery = sqliteTable(
  "delivery",
  {
    tenantId: text("tenant_id").notNull(),
    eventId: text("event_id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    replayNo: integer("replay_no").notNull().default(0),
    subscriptionId: text("subscription_id").notNull(),
    laneKey: text("lane_key"),
    lanePosition: integer("lane_position"),
    holdUntil: integer("hold_until"),
    status: text("status").notNull(),
    token: text("token"),
    lockedUntil: integer("locked_until"),
    attemptCount: integer("attempt_count").notNull().default(0),
    failureCount: integer("failure_count").notNull().default(0),
    relayFaultCount: integer("relay_fault_count").notNull().default(0),
    retryPolicyId: text("retry_policy_id").notNull(),
    createdAt: integer("created_at").notNull(),
    scheduledAt: integer("scheduled_at"),
    nextAttemptAt: integer("next_attempt_at"),
    lastAttemptAt: integer("last_attempt_at"),
    lastErrorClass: text("last_error_class"),
    lastStatusCode: integer("last_status_code"),
    terminalAt: integer("terminal_at"),
    finalOutcome: text("final_outcome"),
    replayOf: integer("replay_of"),
    replayedAs: integer("replayed_as"),
    filterMatchMs: real("filter_match_ms"),
    filterMatchSteps: integer("filter_match_steps"),
    relayRegion: text("relay_region"),
    expiresAt: integer("expires_at").notNull(),
    schemaVersion: integer("schema_version"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.eventId, t.endpointId, t.replayNo] }),
    foreignKey({ columns: [t.tenantId, t.eventId], foreignColumns: [event.tenantId, event.id] }),
    foreignKey({ columns: [t.tenantId, t.endpointId], foreignColumns: [endpoint.tenantId, endpoint.id] }),
    foreignKey({ columns: [t.tenantId, t.subscriptionId], foreignColumns: [subscription.tenantId, subscription.id] }),
    foreignKey({ columns: [t.tenantId, t.retryPolicyId], foreignColumns: [retryPolicy.tenantId, retryPolicy.id] }),
    index("delivery_due")
      .on(t.status, t.nextAttemptAt)
      .where(sql`terminal_at is null and lane_key is null`),
    index("delivery_lane")
      .on(t.endpointId, t.laneKey, t.lanePosition)
      .where(sql`terminal_at is null and lane_key is not null`),
    index("delivery_hold")
      .on(t.holdUntil)
      .where(sql`hold_until is not null`),
    index("delivery_subscription").on(t.subscriptionId, desc(t.createdAt)),
    index("delivery_ended")
      .on(t.tenantId, t.status, t.terminalAt, t.subscriptionId, t.finalOutcome, t.replayedAs, t.expiresAt)
      .where(sql`terminal_at is not null and status <> 'succeeded'`),
    index("delivery_unsuccessful")
      .on(
        t.tenantId,
        t.status,
        t.createdAt,
        t.eventId,
        t.endpointId,
        t.replayNo,
        t.subscriptionId,
        t.finalOutcome,
        t.lastErrorClass,
        t.lastStatusCode,
        t.terminalAt,
        t.replayedAs,
        t.expiresAt,
      )
      .where(sql`terminal_at is not null and status <> 'succeeded'`),
    index("delivery_replay")
      .on(t.tenantId, t.createdAt)
      .where(sql`replay_no > 0`),
    index("delivery_replayable")
      .on(t.tenantId, t.endpointId, t.status)
      .where(sql`terminal_at is not null and status <> 'succeeded'`),
  ],
);

export const attempt = sqliteTable(
  "attempt",
  {
    tenantId: text("tenant_id").notNull(),
    eventId: text("event_id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    replayNo: integer("replay_no").notNull(),
    attemptNumber: integer("attempt_number").notNull(),
    requestedAt: integer("requested_at").notNull(),
    respondedAt: integer("responded_at"),
    latencyMs: integer("latency_ms"),
    statusCode: integer("status_code"),
    outcomeClass: text("outcome_class"),
    errorClass: text("error_class"),
    responseBodySha256: blob("response_body_sha256", { mode: "buffer" }),
    responseHeadersJson: text("response_headers_json"),
    partnerRequestId: text("partner_request_id"),
    workerId: text("worker_id"),
    relayRegion: text("relay_region"),
    endpointRevision: integer("endpoint_revision").notNull(),
    signingSecretIds: text("signing_secret_ids").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.eventId, t.endpointId, t.replayNo, t.attemptNumber] }),
    foreignKey({
      columns: [t.tenantId, t.eventId, t.endpointId, t.replayNo],
      foreignColumns: [delivery.tenantId, delivery.eventId, delivery.endpointId, delivery.replayNo],
    }),
    index("attempt_failed")
      .on(t.tenantId, t.requestedAt, t.errorClass)
      .where(sql`outcome_class <> 'success'`),
    index("attempt_partner_request")
      .on(t.tenantId, t.partnerRequestId)
      .where(sql`partner_request_id is not null and outcome_class <> 'success'`),
  ],
);

export const laneBlock = sqliteTable(
  "lane_block",
  {
    tenantId: text("tenant_id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    laneKey: text("lane_key").notNull(),
    eventId: text("event_id").notNull(),
    replayNo: integer("replay_no").notNull(),
    blockedAt: integer("blocked_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.endpointId, t.laneKey, t.eventId, t.replayNo] }),
    foreignKey({
      columns: [t.tenantId, t.eventId, t.endpointId, t.replayNo],
      foreignColumns: [delivery.tenantId, delivery.eventId, delivery.endpointId, delivery.replayNo],
    }),
  ],
);

export const operationalEvent = sqliteTable(
  "operational_event",
  {
    tenantId: text("tenant_id").notNull(),
    raisedAt: integer("raised_at").notNull(),
    id: text("id").notNull(),
    type: text("type").notNull(),
    facts: text("facts").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.raisedAt, t.id] }),
    foreignKey({ columns: [t.tenantId], foreignColumns: [tenant.id] }),
  ],
);

export const replay = sqliteTable(
  "replay",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    state: text("state").notNull().default("dry_run"),
    filter: text("filter").notNull(),
    toSubscriptionId: text("to_subscription_id"),
    retryPolicy: text("retry_policy"),
    includeReplayed: integer("include_replayed", { mode: "boolean" }).notNull().default(false),
    expected: integer("expected"),
    expectedAtLeast: integer("expected_at_least").notNull(),
    sample: text("sample").notNull().default("[]"),
    lookedAt: integer("looked_at").notNull().default(0),
    found: integer("found").notNull().default(0),
    replayed: integer("replayed").notNull().default(0),
    skipped: text("skipped").notNull().default("{}"),
    error: text("error"),
    createdAt: integer("created_at").notNull(),
    startedAt: integer("started_at"),
    finishedAt: integer("finished_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId], foreignColumns: [tenant.id] }),
    index("replay_created").on(t.tenantId, t.createdAt, t.id),
    index("replay_running")
      .on(t.tenantId)
      .where(sql`state = 'running'`),
  ],
);

export const replayPart = sqliteTable(
  "replay_part",
  {
    tenantId: text("tenant_id").notNull(),
    replayId: text("replay_id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    step: integer("step").notNull().default(0),
    afterEventId: text("after_event_id").notNull().default(""),
    open: text("open").notNull().default("[]"),
    waits: integer("waits").notNull().default(0),
    faults: integer("faults").notNull().default(0),
    nextStepAt: integer("next_step_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.replayId, t.endpointId] }),
    foreignKey({ columns: [t.tenantId, t.replayId], foreignColumns: [replay.tenantId, replay.id] }),
    foreignKey({ columns: [t.tenantId, t.endpointId], foreignColumns: [endpoint.tenantId, endpoint.id] }),
    index("replay_part_due").on(t.nextStepAt),
  ],
);
