import { z } from "zod";
import type { WebhookKey } from "../../app/source/read-webhook-keys.ts";
import { encodePublicKey } from "../../core/source-signature.ts";
import { presentTime } from "./time.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, time } from "./fields.ts";

const WebhookKeyAnswer = z
  .object({ public_key: z.string(), version: z.int(), signs_until: time.nullable() })
  .register(ANSWERS, { id: "WebhookKey" });

export const WebhookKeysAnswer = z
  .object({ source_id: id("src"), keys: z.array(WebhookKeyAnswer) })
  .register(ANSWERS, { id: "WebhookKeys" });
type WebhookKeysAnswer = z.infer<typeof WebhookKeysAnswer>;

export function presentWebhookKeys(sourceId: string, keys: WebhookKey[]): WebhookKeysAnswer {
  return {
    source_id: sourceId,
    keys: keys.map(({ publicKey, version, signsUntil }) => ({
      public_key: encodePublicKey(publicKey),
      version,
      signs_until: presentTime(signsUntil),
    })),
  };
}
