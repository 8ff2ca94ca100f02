import { z } from "zod";
import { parsePublishLimits } from "./core/publish-limits.ts";
import { parseSecretsKeys } from "./core/secret-box.ts";

const KEY_FAULTS = {
  malformed_key: "must be id:base64 of 32 bytes, several of them separated by commas",
  key_not_32_bytes: "a key is not 32 bytes long",
  duplicate_key_id: "an id is given to two keys",
};

const Count = z
  .string()
  .regex(/^\d{1,6}$/, "must be a whole number from 0 to 999999")
  .transform(Number);
function isSafeResolver(text: string): boolean {
  const url = URL.parse(text);
  if (!url) return false;
  const { protocol, hostname, username, password } = url;
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  return (protocol === "https:" || isLocal) && username === "" && password === "";
}

/** Settings and secrets of the Worker, as text in the environment. */
const Settings = z.object({
  OPERATOR_TOKEN: z.string().min(1).max(1_024),
  /** Lets whoever has it read `/metrics`. Without it nothing is counted, and there is no such route. */
  METRICS_TOKEN: z.string().min(16, "must have 16 characters or more").max(1_024).optional(),
  SECRETS_KEY: z.string().transform((text, context) => {
    const keys = parseSecretsKeys(text);
    if (keys.ok) return keys.value;
    context.addIssue({ code: "custom", message: KEY_FAULTS[keys.error] });
    return z.NEVER;
  }),
  ALLOW_PRIVATE_DESTINATIONS: z.enum(["true", "false"]).transform((text) => text === "true"),
  RETENTION_DAYS: z.coerce.number().int().min(1).max(365),
  MAX_PAYLOAD_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .max(5 * 1024 * 1024),
  /** Publish requests a tenant and a key may make, by plan: what the rate limiters of `wrangler.toml` say. */
  PUBLISH_LIMITS: z.string().transform((text, context) => {
    const limits = parsePublishLimits(text);
    if (limits.ok) return limits.value;
    context.addIssue({ code: "custom", message: 'must be plan=tenant/key for free, pro and enterprise, or "off"' });
    return z.NEVER;
  }),
  ENDPOINT_QUOTA_FREE: Count,
  ENDPOINT_QUOTA_PRO: Count,
  ENDPOINT_QUOTA_ENTERPRISE: Count,
  /** Where this relay answers, comma separated: no endpoint may point there. */
  OWN_HOSTS: z
    .string()
    .default("")
    .transform((text) => text.split(",").flatMap((host) => host.trim() || [])),
  /** Asked where a name leads before each request to it, DNS over HTTPS in its JSON form. Plain http on this machine only. */
  DOH_URL: z
    .url({ protocol: /^https?$/ })
    .refine(isSafeResolver, "must be encrypted, unless it is on this machine, and carry no user name")
    .optional(),
  /** Where the ledger is, as a location hint of Durable Objects (`weur`, `enam`, …): lanes are made near it. */
  LEDGER_LOCATION: z.enum(["wnam", "enam", "sam", "weur", "eeur", "apac", "oc", "afr", "me"]).optional(),
  /** What to record as the region of intake where the platform does not say, as on one's own machine. */
  RELAY_REGION: z.string().nullable().default(null),
});
export type Settings = z.infer<typeof Settings>;

/** What the environment of `npm start` may give. */
export const SETTING_NAMES = Object.keys(Settings.shape);

const known = new WeakMap<object, Settings>();

/** Parsed once an isolate. Throws, naming every bad setting but never its value, when the deployment is not complete. */
export function parseSettings(env: object): Settings {
  let settings = known.get(env);
  if (!settings) {
    const parsed = Settings.safeParse(env);
    if (!parsed.success) {
      const faults = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
      throw new Error(`Settings of the Worker are missing or malformed. ${faults.join("; ")}`);
    }
    settings = parsed.data;
    known.set(env, settings);
  }
  return settings;
}
