import { AppError } from "./app-error.ts";

/** Who calls, and for which tenant. Made by `authenticate`, handed to every use-case. */
export interface Principal {
  tenantId: string;
  /** `admin` also for the operator acting for the tenant. */
  scope: "admin" | "read" | "publish";
  /** The one source a `publish` key may publish for. */
  sourceId: string | null;
}

export function requireAdmin(principal: Principal): void {
  if (principal.scope !== "admin") throw new AppError("forbidden", "This needs a key of scope admin.");
}

export function requireReader(principal: Principal): void {
  if (principal.scope === "publish") throw new AppError("forbidden", "This needs a key of scope read or admin.");
}
