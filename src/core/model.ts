/** The nouns of contract §1 as the rules and use-cases see them. Times are milliseconds since 1970 UTC. */
import type { StoredHeader } from "./endpoint-headers.ts";
import type { EventVariant } from "./event-variants.ts";
import type { SkippedSubscription } from "./match.ts";
import type { PayloadFormat } from "./outbound.ts";
import type { RetryPolicy, RetryPolicyInput } from "./retry-policy.ts";

export interface Tenant {
  id: string;
  name: string;
  plan: "free" | "pro" | "enterprise";
  status: "active" | "suspended";
  /** Null for what its plan says. */
  endpointQuota: number | null;
  /** Under which the relay's own headers go out once more; null for none. */
  headerPrefix: string | null;
  /** Whether its producers may publish registered types and versions only. */
  requireRegisteredTypes: boolean;
  suspendedAt: number | null;
  shard: string;
  createdAt: number;
}

export interface Source {
  id: string;
  name: string;
  allowedEventTypes: string[];
  /** How many signing keys it has had: 0 for one that has none yet. */
  signingKeyVersion: number;
  /** When the key before the present one stops to verify, or did. Null when there was none. */
  previousValidUntil: number | null;
  /** How many delivery keys it has had: 0 for one that has none yet. */
  deliveryKeyVersion: number;
  /** When the delivery key before the present one stops to sign, or did. Null when there was none. */
  deliveryKeyPreviousValidUntil: number | null;
  createdAt: number;
}

/** The signing keys, or the delivery keys, of a source as they are stored, wrapped. The previous one is of the version before. */
export interface SourceKeys {
  version: number;
  current: Uint8Array | null;
  previous: Uint8Array | null;
  previousValidUntil: number | null;
}

/** A delivery key as it is stored: its private half wrapped. */
export interface StoredDeliveryKey {
  version: number;
  wrappedKey: Uint8Array;
  publicKey: Uint8Array;
}

/** The public halves of a source's delivery keys, of which anybody may know. */
export interface PublicDeliveryKeys {
  version: number;
  current: Uint8Array;
  previous: Uint8Array | null;
  previousValidUntil: number | null;
}

export interface ApiKey {
  id: string;
  prefix: string;
  scope: "admin" | "read" | "publish";
  sourceId: string | null;
  name: string | null;
  createdAt: number;
}

export interface Endpoint {
  id: string;
  url: string;
  name: string | null;
  revision: number;
  orderingMode: "unordered" | "strict" | "keyed";
  concurrencyCap: number | null;
  rateLimitPerSecond: number | null;
  maxHeadHoldSeconds: number | null;
  onExhausted: "advance" | "block";
  route: "queue" | "lane";
  laneGeneration: number;
  retryPolicy: RetryPolicy;
  payloadFormat: PayloadFormat;
  /** Whether what it gets is signed by the source's delivery key too. */
  sourceSignatures: boolean;
  headers: StoredHeader[];
  timeoutMs: number;
  pausedAt: number | null;
  disabledAt: number | null;
  lastDisabledAt: number | null;
  disabledReason: string | null;
  /** Since when it has had nothing but failures; null while its last answer was a success, or there was none. */
  failingSince: number | null;
  /** How long that may go on before it is disabled; null for ever. */
  disableAfterFailingSeconds: number | null;
  /** Since when it is in quarantine, which the relay alone decides; null when it is not. */
  quarantinedAt: number | null;
  createdAt: number;
}

export interface SigningSecret {
  id: string;
  slot: 0 | 1;
  wrappedKey: Uint8Array;
  activeFrom: number;
  /** Null while no rotation has set its end. */
  activeUntil: number | null;
}

export interface Subscription {
  id: string;
  endpointId: string;
  eventTypePattern: string;
  /** Its source as it was given; null takes every event of the pattern. */
  filter: string | null;
  /** The last failure of this filter that was noted, at most one an hour; null when there was none since it was set. */
  filterFailure: FilterFailureNote | null;
  /** Words, a space between them; null for none. A type that requires one that is not among them does not match. */
  entitlementScope: string | null;
  /** The version it asks for; null for the newest that an event carries. */
  schemaVersion: number | null;
  /** The override as it was given; null leaves the endpoint's policy alone. */
  retryPolicy: RetryPolicyInput | null;
  /** It matches nothing while this is set. */
  disabledAt: number | null;
  lastDisabledAt: number | null;
  createdAt: number;
}

/** A filter that said neither yes nor no of an event. */
export interface FilterFailureNote {
  at: number;
  reason: string;
  eventId: string;
}

export interface EventType {
  name: string;
  /** A subscription that has not this word in its entitlement does not match; null asks for none. */
  requiredScope: string | null;
  /** Of the oldest version. */
  createdAt: number;
  /** Lowest first; there is at least one. */
  versions: EventTypeVersion[];
}

export interface EventTypeVersion {
  schemaVersion: number;
  /** Null where payloads are not checked. */
  jsonSchema: Record<string, unknown> | null;
  /** Since when it is delivered to nobody. */
  retiredAt: number | null;
  createdAt: number;
}

export interface Event {
  id: string;
  sourceId: string;
  type: string;
  schemaVersion: number;
  orderingKey: string | null;
  idempotencyKey: string | null;
  payloadRef: string;
  /** Hex. */
  payloadSha256: string;
  payloadSize: number;
  payloadIsJson: boolean;
  contentType: string;
  contentEncoding: string | null;
  occurredAt: number;
  relayedAt: number;
  causeEventId: string | null;
  relayRegion: string | null;
  expiresAt: number;
  dispatchedAt: number | null;
  deliveryCount: number;
  /** Relays it had come through before this one. */
  hopCount: number;
  /** Since when its bytes are gone for good; null while they are kept. */
  payloadErasedAt: number | null;
  /** Subscriptions that were passed over because their filter failed. */
  skippedCount: number;
  /** The first of them. */
  skipped: SkippedSubscription[];
  /** The payload in further versions, lowest first. */
  variants: EventVariant[];
}

export const DELIVERY_STATUSES = [
  "pending",
  "processing",
  "succeeded",
  "failed",
  "dead_letter",
  "expired",
  "cancelled",
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export interface Delivery {
  eventId: string;
  endpointId: string;
  replayNo: number;
  subscriptionId: string;
  /** Of the payload that it carries, or that was asked for and could not be had. */
  schemaVersion: number;
  status: DeliveryStatus;
  attemptCount: number;
  /** As it was when the delivery was made. */
  retryPolicy: RetryPolicy;
  createdAt: number;
  scheduledAt: number | null;
  nextAttemptAt: number | null;
  lastAttemptAt: number | null;
  lastErrorClass: string | null;
  lastStatusCode: number | null;
  terminalAt: number | null;
  finalOutcome: string | null;
  replayOf: number | null;
  replayedAs: number | null;
  filterMatchMs: number | null;
  filterMatchSteps: number | null;
  relayRegion: string | null;
  expiresAt: number;
}

export interface Attempt {
  attemptNumber: number;
  requestedAt: number;
  respondedAt: number | null;
  latencyMs: number | null;
  statusCode: number | null;
  outcomeClass: string | null;
  errorClass: string | null;
  /** Hex, of what was read of the body. */
  responseBodySha256: string | null;
  responseHeadersJson: string | null;
  partnerRequestId: string | null;
  workerId: string | null;
  relayRegion: string | null;
  endpointRevision: number;
  signingSecretIds: string[];
}

/** What an operator may change of a tenant; what is absent stays. */
export type TenantChanges = Partial<
  Pick<Tenant, "name" | "plan" | "status" | "endpointQuota" | "headerPrefix" | "requireRegisteredTypes">
>;

/** A version to be registered: `requiredScope` undefined is that of the type's other versions, null if there are none. */
export interface NewEventTypeVersion {
  name: string;
  schemaVersion: number;
  requiredScope: string | null | undefined;
  jsonSchema: string | null;
  createdAt: number;
}

/** What may change of a type, and of one of its versions; what is undefined stays. */
export interface EventTypeChanges {
  requiredScope: string | null | undefined;
  version: { schemaVersion: number; isRetired: boolean | undefined; jsonSchema: string | null | undefined } | undefined;
}

/** A subscription that asks for one version. */
export type PinnedSubscription = Pick<Subscription, "id" | "endpointId" | "eventTypePattern">;

/** The place of a row in a list: lists go by creation, newest first, and by id where two are of the same millisecond. */
export interface PageKey {
  createdAt: number;
  id: string;
}

export interface PageRequest {
  /** Rows at most. */
  limit: number;
  /** The last row already shown; null starts at the newest. */
  after: PageKey | null;
}

/** The settings of an endpoint that a change may touch beside its policy; what is absent stays. */
export type EndpointChanges = Partial<
  Pick<Endpoint, "url" | "name" | "payloadFormat" | "sourceSignatures" | "headers" | "disableAfterFailingSeconds">
>;

/** What of a subscription a change may touch. */
export type SubscriptionChanges = Pick<
  Subscription,
  "eventTypePattern" | "filter" | "entitlementScope" | "schemaVersion" | "retryPolicy"
>;

/** The settings that decide how an endpoint's deliveries are routed and paced; what is absent stays. */
export type RoutingChanges = Partial<
  Pick<
    Endpoint,
    "orderingMode" | "concurrencyCap" | "rateLimitPerSecond" | "maxHeadHoldSeconds" | "onExhausted" | "timeoutMs"
  >
>;

/** An endpoint and what its subscriptions say over its policy, as of one revision of the tenant's configuration. */
export interface EndpointWithOverrides {
  tenantRevision: number;
  endpoint: Endpoint;
  overrides: { subscriptionId: string; retryPolicy: RetryPolicyInput }[];
}

/** A new policy of an endpoint, and what it makes of its subscriptions' overrides; valid for that revision only. */
export interface PolicyChange {
  tenantRevision: number;
  retryPolicy: RetryPolicy;
  effective: { subscriptionId: string; retryPolicy: RetryPolicy }[];
}

/** The policies a subscription was computed from and with: it may be stored only while the endpoint still has the first. */
export interface SubscriptionPolicies {
  endpoint: RetryPolicy;
  /** The override merged over it; null without an override. */
  effective: RetryPolicy | null;
}
