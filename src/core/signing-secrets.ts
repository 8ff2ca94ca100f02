import type { SigningSecret } from "./model.ts";
import { ok, refuse, type Result } from "./result.ts";

/** What binds a wrapped secret to its row (see `secret-box`). */
export function secretContext(tenantId: string, endpointId: string, secretId: string): string {
  return `${tenantId}/${endpointId}/${secretId}`;
}

/**
 * The secrets that sign at this moment, newest first: one, or two while a rotation's overlap runs. Their start is not
 * looked at: none is made for later, and a clock a little behind the one that made it must not leave deliveries unsigned.
 */
export function liveSecrets<T extends Pick<SigningSecret, "activeUntil">>(secrets: readonly T[], nowMs: number): T[] {
  return secrets.filter((secret) => endOf(secret) > nowMs).toSorted((a, b) => endOf(b) - endOf(a));
}

export interface RotationPlan {
  /** Where the new secret goes: a free slot, or with `force` that of the oldest live one, which so ends at once. */
  slot: 0 | 1;
  /** The secret in use until now, which stays live through the overlap. */
  current: SigningSecret | undefined;
}

/** A third live secret is refused unless forced. The newest live one always stays: receivers know it. */
export function planRotation(
  secrets: readonly SigningSecret[],
  nowMs: number,
  force: boolean,
): Result<RotationPlan, "rotation_in_progress"> {
  const [current, previous] = liveSecrets(secrets, nowMs);
  if (previous && !force) return refuse("rotation_in_progress");
  return ok({ slot: current?.slot === 0 ? 1 : 0, current });
}

function endOf(secret: Pick<SigningSecret, "activeUntil">): number {
  return secret.activeUntil ?? Number.POSITIVE_INFINITY;
}
