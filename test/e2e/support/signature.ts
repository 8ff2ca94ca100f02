import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import type { Received } from "./receiver.ts";

/** What a consumer gets out of a request whose body is JSON; throws when the signature does not hold. */
export function verifyJson(secret: string, request: Received): any {
  return new Webhook(secret).verify(request.body.toString(), request.headers as Record<string, string>);
}

/** Whether one of the signatures is this secret's over the raw bytes: for bodies that the package would decode as text. */
export function isSignedBy(secret: string, request: Received): boolean {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const { "webhook-id": id, "webhook-timestamp": timestamp } = request.headers;
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(request.body).digest("base64");
  return signaturesOf(request).includes(`v1,${expected}`);
}

export function signaturesOf(request: Received): string[] {
  return String(request.headers["webhook-signature"]).split(" ");
}
