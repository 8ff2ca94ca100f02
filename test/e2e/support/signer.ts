import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";

/** A producer: what it needs to sign. */
export interface Signer {
  sourceId: string;
  key: string;
}

interface SignOptions {
  id?: string;
  /** Away from now. */
  skewSeconds?: number;
}

let serial = 0;

/** The headers of a signed publish of `body`, made by the package that consumers verify with. */
export function signHeaders(signer: Signer, body: string | Buffer, options: SignOptions = {}): Record<string, string> {
  const id = options.id ?? `msg-${process.pid}-${++serial}`;
  const at = new Date(Date.now() + (options.skewSeconds ?? 0) * 1_000);
  return {
    "X-Webhook-Source": signer.sourceId,
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
    "webhook-signature": new Webhook(signer.key).sign(id, at, body),
  };
}

/** The same for a raw publish, by hand and from the documentation alone. */
export function signRawHeaders(
  signer: Signer,
  { search }: URL,
  body: Uint8Array,
  content: { "Content-Type"?: string; "Content-Encoding"?: string },
  id = `raw-${process.pid}-${++serial}`,
): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac("sha256", Buffer.from(signer.key.slice("whsec_".length), "base64"))
    .update(`${id}.${timestamp}.${search}\n${content["Content-Type"] ?? ""}\n${content["Content-Encoding"] ?? ""}\n`)
    .update(body)
    .digest("base64");
  return {
    ...content,
    "X-Webhook-Source": signer.sourceId,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}
