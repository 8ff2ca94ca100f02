import type { Context } from "hono";
import type { ShardDeps } from "../app/deps.ts";
import { findSourcePlace } from "../app/publish/find-source-place.ts";
import { authorizePublisher, type Publisher, type PublisherRef } from "../app/publish/publish-config.ts";
import { admitPublisher } from "../app/publish/publish-limit.ts";
import { invalidSignature, refuseUnknownSigner } from "../app/publish/verify-signed.ts";
import { isId } from "../core/ids.ts";
import {
  isTimely,
  parseSignatureHeaders,
  rawSignedBody,
  TIMESTAMP_TOLERANCE_SECONDS,
  type SignatureHeaderFault,
} from "../core/signed-request.ts";
import type { HttpContext } from "./context.ts";
import { findCaller, refuseOtherTenant, type AuthOptions } from "./middleware/authenticate.ts";

/** A publish whose caller is known. */
export interface OpenedPublish {
  deps: ShardDeps;
  publisher: Publisher;
  /** The body as it came; throws what is wrong with it. */
  body(): Promise<Uint8Array>;
  /** Of a signed request: the idempotency key of an event that has none, so that a replay makes no second one. */
  messageId: string | null;
}

const FAULTS: Record<SignatureHeaderFault, string> = {
  malformed_id: "webhook-id must be 1 to 128 visible ASCII characters without a dot.",
  malformed_timestamp: "webhook-timestamp must be Unix seconds.",
  malformed_signature: "webhook-signature must hold one to four signatures of v1, in at most 1024 characters.",
};

/**
 * Authorizes by the token; without an `Authorization` header, by the signature. `read` gives the body within the limit it
 * is told; `isRaw` says that query and content headers are signed with it.
 */
export async function openPublish(
  options: AuthOptions,
  c: Context<HttpContext>,
  read: (maxPayloadBytes: number) => Promise<Uint8Array>,
  isRaw = false,
): Promise<OpenedPublish> {
  if (c.req.header("Authorization") === undefined && c.req.header("webhook-signature") !== undefined) {
    return openSigned(options, c, read, isRaw);
  }
  const { deps, ref } = await findCaller(options, c);
  const publisher = await admit(c, deps, ref);
  return { deps, publisher, body: () => read(deps.maxPayloadBytes), messageId: null };
}

/**
 * What can be said of the request alone is said first, and the body is read before anything is looked up: neither a
 * refusal nor its moment tells which sources exist.
 */
async function openSigned(
  options: AuthOptions,
  c: Context<HttpContext>,
  read: (maxPayloadBytes: number) => Promise<Uint8Array>,
  isRaw: boolean,
): Promise<OpenedPublish> {
  const { central } = c.var;
  const { sourceId, id, timestampSeconds, signatures } = readSignature(c, central.now());
  const body = await read(central.maxPayloadBytes);
  const signed = {
    message: { id, timestampSeconds, body: isRaw ? rawSignedBody(signedHead(c), body) : body },
    signatures,
  };
  const place = await findSourcePlace(central, sourceId);
  if (!place) return refuseUnknownSigner(signed);
  const deps = options.composeShard(c.env, c.executionCtx as ExecutionContext, place.shard);
  const publisher = await admit(c, deps, { tenantId: place.tenantId, sourceId, signed });
  return { deps, publisher, body: async () => body, messageId: id };
}

/** Within its limits: of a token's request nothing of the body has been read by then. */
async function admit(c: Context<HttpContext>, deps: ShardDeps, ref: PublisherRef): Promise<Publisher> {
  const publisher = await authorizePublisher(deps, ref);
  const { tenantId } = publisher.config;
  c.set("tenantId", tenantId);
  refuseOtherTenant(c, tenantId);
  return admitPublisher(deps, publisher);
}

function readSignature(c: Context<HttpContext>, nowMs: number) {
  const sourceId = c.req.header("X-Webhook-Source") ?? "";
  if (!isId("src", sourceId)) throw invalidSignature("X-Webhook-Source must be the id of a source, src_….");
  const headers = parseSignatureHeaders({
    id: c.req.header("webhook-id") ?? "",
    timestamp: c.req.header("webhook-timestamp") ?? "",
    signature: c.req.header("webhook-signature") ?? "",
  });
  if (!headers.ok) throw invalidSignature(FAULTS[headers.error]);
  if (!isTimely(headers.value.timestampSeconds, nowMs)) {
    throw invalidSignature(`webhook-timestamp is more than ${TIMESTAMP_TOLERANCE_SECONDS} seconds from now.`);
  }
  return { sourceId, ...headers.value };
}

function signedHead(c: Context<HttpContext>) {
  return {
    query: new URL(c.req.url).search,
    contentType: c.req.header("Content-Type") ?? "",
    contentEncoding: c.req.header("Content-Encoding") ?? "",
  };
}
