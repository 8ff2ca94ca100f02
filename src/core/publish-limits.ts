import { ok, refuse, type Result } from "./result.ts";
import type { Tenant } from "./model.ts";

export type Plan = Tenant["plan"];

/** Publish requests in one period, at one location. */
export interface PublishLimit {
  perTenant: number;
  perKey: number;
}

export type PublishLimits = Record<Plan, PublishLimit>;

/** Of the two periods that Cloudflare's limiter knows (10 and 60 seconds) the one that lets a producer go on sooner. */
export const PUBLISH_PERIOD_SECONDS = 10;

const PLANS: Plan[] = ["free", "pro", "enterprise"];
const ENTRY = /^([a-z]{1,16})=([1-9]\d{0,8})\/([1-9]\d{0,8})$/;

/** `free=2000/1000 pro=… enterprise=…`, tenant before key and every plan once; or `off`, which is null. */
export function parsePublishLimits(text: string): Result<PublishLimits | null, "malformed"> {
  if (text === "off") return ok(null);
  const limits = new Map<string, PublishLimit>();
  for (const part of text.trim().split(/\s+/)) {
    const entry = ENTRY.exec(part);
    if (!entry || limits.has(entry[1]!)) return refuse("malformed");
    limits.set(entry[1]!, { perTenant: Number(entry[2]), perKey: Number(entry[3]) });
  }
  const isWhole = limits.size === PLANS.length && PLANS.every((plan) => limits.has(plan));
  return isWhole ? ok(Object.fromEntries(limits) as PublishLimits) : refuse("malformed");
}

/** The binding of Cloudflare's limiter that counts for a plan; its numbers stand in `wrangler.toml`. */
export function publishLimiterName(plan: Plan, whose: "tenant" | "key") {
  return `PUBLISHES_PER_${whose.toUpperCase()}_${plan.toUpperCase()}` as `PUBLISHES_PER_${Uppercase<typeof whose>}_${Uppercase<Plan>}`;
}

/** All bindings with their numbers, by name. */
export function listPublishLimiters(limits: PublishLimits): Record<string, number> {
  return Object.fromEntries(
    PLANS.flatMap((plan) => [
      [publishLimiterName(plan, "tenant"), limits[plan].perTenant],
      [publishLimiterName(plan, "key"), limits[plan].perKey],
    ]),
  );
}
