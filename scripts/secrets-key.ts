import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * The key of a local relay's secrets, made once. It is there whole and on disk, or not at all: a start that is killed in between
 * leaves nothing behind that a later one would take for a key, and nothing is wrapped with one that could be lost.
 */
export function loadOrCreateSecretsKey(file: string): string {
  const kept = read(file);
  if (kept !== "") return kept;
  const key = `local:${randomBytes(32).toString("base64")}`;
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${key}\n`, { mode: 0o600, flush: true });
  renameSync(draft, file);
  return key;
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    // A key that cannot be read is still what everything was wrapped with.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return "";
  }
}
