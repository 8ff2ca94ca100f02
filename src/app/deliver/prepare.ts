import { checkHeaderName, headerContext, isHeaderValue, parseStoredHeaders } from "../../core/endpoint-headers.ts";
import { decodeBase64 } from "../../core/base64.ts";
import type { TenantDeliveryRef } from "../../core/ids.ts";
import type { DeliveryStatus, SourceKeys } from "../../core/model.ts";
import { outboundBody, type OutboundEvent, type PayloadFormat } from "../../core/outbound.ts";
import type { FinalOutcome } from "../../core/outcome.ts";
import type { RetryPolicy } from "../../core/retry-policy.ts";
import { unwrapSecret, type SecretsKeys } from "../../core/secret-box.ts";
import { liveSecrets, secretContext } from "../../core/signing-secrets.ts";
import { deliveryKeyContext, liveSourceKeys } from "../../core/source-keys.ts";
import { checkDestination, type DestinationOptions } from "../../core/url-guard.ts";
import { relayFaultDelayAfterMs } from "../../core/delivery-end.ts";
import { isAsPublished } from "../payload-hash.ts";
import type { Runtime } from "../runtime.ts";
import type { Verdict } from "./check-host.ts";
import type { PayloadReader } from "./payload-reader.ts";
import { MAX_REPORT_WAIT_MS } from "./report.ts";

/** A delivery with all that an attempt needs, as the ledger had it at one moment. */
export interface LoadedDelivery extends TenantDeliveryRef {
  status: DeliveryStatus;
  attemptCount: number;
  failureCount: number;
  relayFaultCount: number;
  nextAttemptAt: number | null;
  lastAttemptAt: number | null;
  lockedUntil: number | null;
  token: string | null;
  /** Where its age begins; null while its lane has not let it through. */
  scheduledAt: number | null;
  expiresAt: number;
  laneKey: string | null;
  holdUntil: number | null;
  policy: RetryPolicy;
  event: OutboundEvent & { payloadRef: string; payloadSize: number; payloadSha256: string; payloadErased: boolean };
  endpoint: {
    url: string;
    revision: number;
    payloadFormat: PayloadFormat;
    /** Its own, as `core/endpoint-headers` stores them. */
    headers: string;
    /** Its tenant's. */
    headerPrefix: string | null;
    timeoutMs: number;
    /** Also while its tenant is suspended. */
    pausedAt: number | null;
    resumedAt: number | null;
    disabledAt: number | null;
    deletedAt: number | null;
    route: "queue" | "lane";
    laneGeneration: number;
    /** From when on one more failure may disable it; null while nothing does. */
    disablesAt: number | null;
    /** Since when it has had nothing but failures. */
    failingSince: number | null;
  };
  secrets: { id: string; wrappedKey: Uint8Array; activeUntil: number | null }[];
  /** The event's source and its delivery keys, where the endpoint asks for its signature. */
  sourceSignature: { sourceId: string; keys: SourceKeys } | null;
}

/** All of a request that can be known before it is made. */
export interface Prepared {
  url: string;
  body: Uint8Array;
  contentType: string;
  contentEncoding: string | null;
  secrets: { id: string; key: Uint8Array }[];
  /** Of the source, that sign too; none unless the endpoint asks. */
  sourceKeys: Uint8Array[];
  /** The endpoint's own. */
  headers: [string, string][];
  /** Its name leads nowhere: there is nobody to connect to. */
  isUnresolvable: boolean;
}

/** `refused`: there will be no request, ever. `fault`: ours, and nothing is spent; ring again after the delay. */
export type PrepareResult =
  | { kind: "ready"; prepared: Prepared }
  | { kind: "refused"; finalOutcome: FinalOutcome }
  | { kind: "fault"; delayMs: number };

export interface PrepareDeps extends Pick<Runtime, "now"> {
  getPayload: PayloadReader;
  secretsKeys: SecretsKeys;
  destinationRules: DestinationOptions;
  /** Where a host name leads; null where that is left to the platform. Throws when it cannot be found out. */
  checkHost: ((hostname: string) => Promise<Verdict>) | null;
  /** The first delivery key of a source that has none. */
  makeDeliveryKey(tenantId: string, sourceId: string): Promise<SourceKeys>;
  /** Until when reports of attempts may be waiting outside the ledger; 0 when none are known of. */
  reportsUntil(): Promise<number>;
  logFault(what: string, error: unknown): void;
}

const REPORT_CHECK_MS = 5_000;

/** Payload, secrets and destination, before anything is claimed: no attempt is on record without a request. */
export async function prepare(
  deps: PrepareDeps,
  readPayload: PayloadReader,
  delivery: LoadedDelivery,
): Promise<PrepareResult> {
  const destination = checkDestination(delivery.endpoint.url, deps.destinationRules);
  if (!destination.ok) return { kind: "refused", finalOutcome: "destination_blocked" };
  if (delivery.event.payloadErased) return { kind: "refused", finalOutcome: "payload_missing" };
  try {
    if (await mayBeReported(deps, delivery)) return { kind: "fault", delayMs: REPORT_CHECK_MS };
    const verdict = (await deps.checkHost?.(new URL(destination.value.url).hostname)) ?? "public";
    if (verdict === "blocked") return { kind: "refused", finalOutcome: "destination_blocked" };
    const headers = await ownHeaders(deps, delivery);
    const secrets = await unwrapLiveSecrets(deps, delivery);
    const sourceKeys = await unwrapSourceKeys(deps, delivery);
    const payload = await readPayload(delivery.event.payloadRef, delivery.event.payloadSize);
    if (payload === null) return { kind: "refused", finalOutcome: "payload_missing" };
    // The last guard of the bytes.
    if (!(await isAsPublished(payload, delivery.event.payloadSha256)))
      return { kind: "refused", finalOutcome: "payload_missing" };
    const outbound = outboundBody(delivery.endpoint.payloadFormat, delivery.event, payload);
    const isUnresolvable = verdict === "unresolvable";
    const { url } = destination.value;
    return { kind: "ready", prepared: { url, secrets, sourceKeys, headers, isUnresolvable, ...outbound } };
  } catch (error) {
    deps.logFault("prepare", error);
    const overdueMs = deps.now() - (delivery.nextAttemptAt ?? deps.now());
    return { kind: "fault", delayMs: relayFaultDelayAfterMs(overdueMs) };
  }
}

/**
 * Whether what came of an attempt that was taken for abandoned may be on its way to the ledger all the same: one whose answer
 * came after its lease, while the ledger was away. Until that is known it is not attempted again, but not for ever.
 */
async function mayBeReported(deps: PrepareDeps, { relayFaultCount, lastAttemptAt }: LoadedDelivery): Promise<boolean> {
  const now = deps.now();
  if (relayFaultCount === 0 || (lastAttemptAt ?? 0) <= now - MAX_REPORT_WAIT_MS) return false;
  return (await deps.reportsUntil()) > now;
}

/**
 * What the endpoint asks to be sent besides. A row that holds what could not have been set through the API does not get it
 * onto the wire, and is told by the header's name alone.
 */
async function ownHeaders(deps: PrepareDeps, delivery: LoadedDelivery): Promise<[string, string][]> {
  const { tenantId, endpointId } = delivery;
  const { headerPrefix } = delivery.endpoint;
  const headers = new Map<string, [string, string]>();
  for (const header of parseStoredHeaders(delivery.endpoint.headers)) {
    const { name } = header;
    const value = "value" in header ? header.value : await unwrapHeader(deps, tenantId, endpointId, header);
    if (checkHeaderName(name, headerPrefix).ok && isHeaderValue(value)) headers.set(name.toLowerCase(), [name, value]);
    else deps.logFault("prepare", new Error(`endpoint ${endpointId}: the header ${JSON.stringify(name)} is left out`));
  }
  return [...headers.values()];
}

async function unwrapHeader(
  { secretsKeys }: PrepareDeps,
  tenantId: string,
  endpointId: string,
  { name, wrapped }: { name: string; wrapped: string },
): Promise<string> {
  const bytes = decodeBase64(wrapped);
  const value = bytes.ok && (await unwrapSecret(secretsKeys, bytes.value, headerContext(tenantId, endpointId, name)));
  // Without it the receiver would refuse the request, and the endpoint would pay for that.
  if (!value || !value.ok)
    throw new Error(`endpoint ${endpointId}: the header ${JSON.stringify(name)} cannot be unwrapped`);
  return new TextDecoder().decode(value.value);
}

/**
 * Nothing goes out without the signature that its endpoint asked for. Keys are unwrapped for each request, as secrets are: that
 * costs a fraction of the signature, and keeps no key in memory for longer.
 */
async function unwrapSourceKeys(
  deps: PrepareDeps,
  { tenantId, sourceSignature }: LoadedDelivery,
): Promise<Uint8Array[]> {
  if (!sourceSignature) return [];
  const { sourceId } = sourceSignature;
  const keys = sourceSignature.keys.current ? sourceSignature.keys : await deps.makeDeliveryKey(tenantId, sourceId);
  const live = liveSourceKeys(keys, deps.now());
  if (live.length === 0) throw new Error(`source ${sourceId} has no delivery key`);
  return Promise.all(
    live.map(async ({ version, wrappedKey }) => {
      const key = await unwrapSecret(deps.secretsKeys, wrappedKey, deliveryKeyContext(tenantId, sourceId, version));
      if (!key.ok) throw new Error(`delivery key ${version} of ${sourceId}: ${key.error}`);
      return key.value;
    }),
  );
}

async function unwrapLiveSecrets(deps: PrepareDeps, delivery: LoadedDelivery): Promise<Prepared["secrets"]> {
  const live = liveSecrets(delivery.secrets, deps.now());
  if (live.length === 0) throw new Error(`endpoint ${delivery.endpointId} has no live signing secret`);
  return Promise.all(
    live.map(async ({ id, wrappedKey }) => {
      const context = secretContext(delivery.tenantId, delivery.endpointId, id);
      const key = await unwrapSecret(deps.secretsKeys, wrappedKey, context);
      if (!key.ok) throw new Error(`signing secret ${id}: ${key.error}`);
      return { id, key: key.value };
    }),
  );
}
