import type { ListedSecret } from "../../app/endpoint/list-secrets.ts";
import type { RotatedSecret } from "../../app/endpoint/rotate-secret.ts";
import type { SigningSecret } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";

/** Without the text of the secret, unless it was asked for. */
export function presentListedSecret(endpointId: string, { secret, text }: ListedSecret) {
  return { ...presentWindow(endpointId, secret), ...(text !== null && { secret: text }) };
}

export function presentRotatedSecret(endpointId: string, { secret, text, previous }: RotatedSecret) {
  return {
    ...presentWindow(endpointId, secret),
    secret: text,
    previous: previous && { id: previous.id, active_until: formatTime(previous.activeUntil) },
  };
}

function presentWindow(endpointId: string, secret: SigningSecret) {
  return {
    id: secret.id,
    endpoint_id: endpointId,
    active_from: formatTime(secret.activeFrom),
    active_until: presentTime(secret.activeUntil),
  };
}
