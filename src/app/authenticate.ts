import { sha256 } from "../core/sha256.ts";
import { AppError } from "./app-error.ts";
import type { Principal } from "./principal.ts";

export interface AuthenticateDeps {
  /** The living key of a living tenant behind a hash. */
  findKeyOwner(keyHash: Uint8Array): Promise<Principal | null>;
}

const API_KEY = /^hlk_([a-z0-9]{1,16})_[A-Za-z0-9_-]{43}$/;

/** The shard an API key names, null for a text that is no key. */
export function shardOfKey(token: string): string | null {
  return API_KEY.exec(token)?.[1] ?? null;
}

/** What the ledger knows a key by. */
export function hashKey(token: string): Promise<Uint8Array> {
  return sha256(token);
}

/** Whoever the key belongs to, fresh from the ledger: a revoked key is revoked at once. Throws `unauthorized`. */
export async function authenticate(deps: AuthenticateDeps, keyHash: Uint8Array): Promise<Principal> {
  const principal = await deps.findKeyOwner(keyHash);
  if (!principal) throw unauthorized();
  return principal;
}

export function unauthorized(): AppError {
  return new AppError("unauthorized", "A valid bearer token is required.");
}
