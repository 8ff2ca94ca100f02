import { RateLimited } from "../app/publish/publish-limit.ts";

/**
 * What a refusal for its rate says in headers: `Retry-After` in seconds, and draft-ietf-httpapi-ratelimit-headers. The
 * limiter does not say when its period ends, so both give the whole of it, which is always long enough.
 */
export function rateLimitHeaders(error: unknown): Record<string, string> {
  if (!(error instanceof RateLimited)) return {};
  const { exceeded, policies, periodSeconds } = error;
  return {
    "Retry-After": String(periodSeconds),
    RateLimit: `"${exceeded}";r=0;t=${periodSeconds}`,
    "RateLimit-Policy": policies.map(({ name, quota }) => `"${name}";q=${quota};w=${periodSeconds}`).join(", "),
  };
}
