import { z } from "zod";
import type { ListedSecret } from "../../app/endpoint/list-secrets.ts";
import type { RotatedSecret } from "../../app/endpoint/rotate-secret.ts";
import type { SigningSecret } from "../../core/model.ts";
import { formatTime } from "../../core/timestamps.ts";
import { presentTime } from "./time.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, time } from "./fields.ts";

const SecretWindow = z.object({
  id: id("sec"),
  endpoint_id: id("ep"),
  active_from: time,
  active_until: time.nullable(),
});
type SecretWindow = z.infer<typeof SecretWindow>;

export const ListedSecretAnswer = SecretWindow.extend({ secret: z.string().optional() }).register(ANSWERS, {
  id: "SigningSecret",
});
type ListedSecretAnswer = z.infer<typeof ListedSecretAnswer>;

export const RotatedSecretAnswer = SecretWindow.extend({
  secret: z.string(),
  previous: z.object({ id: id("sec"), active_until: time }).nullable(),
}).register(ANSWERS, { id: "RotatedSecret" });
type RotatedSecretAnswer = z.infer<typeof RotatedSecretAnswer>;

/** Without the text of the secret, unless it was asked for. */
export function presentListedSecret(endpointId: string, { secret, text }: ListedSecret): ListedSecretAnswer {
  return { ...presentWindow(endpointId, secret), ...(text !== null && { secret: text }) };
}

export function presentRotatedSecret(
  endpointId: string,
  { secret, text, previous }: RotatedSecret,
): RotatedSecretAnswer {
  return {
    ...presentWindow(endpointId, secret),
    secret: text,
    previous: previous && { id: previous.id, active_until: formatTime(previous.activeUntil) },
  };
}

function presentWindow(endpointId: string, secret: SigningSecret): SecretWindow {
  return {
    id: secret.id,
    endpoint_id: endpointId,
    active_from: formatTime(secret.activeFrom),
    active_until: presentTime(secret.activeUntil),
  };
}
