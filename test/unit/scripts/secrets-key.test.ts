import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadOrCreateSecretsKey } from "../../../scripts/secrets-key.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hooklane-key-"));
  file = join(folder, "secrets-key");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a key is made once, for its owner's eyes only, and kept", () => {
  const key = loadOrCreateSecretsKey(file);
  expect(key).toMatch(/^local:[A-Za-z0-9+/]{43}=$/);
  expect(statSync(file).mode & 0o077).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(`${key}\n`);
  expect(loadOrCreateSecretsKey(file)).toBe(key);
  expect(readdirSync(folder)).toEqual(["secrets-key"]);
});

test("what a start that was killed left of a key is no key", () => {
  writeFileSync(file, "");
  writeFileSync(`${file}.new`, "local:AAAA", { mode: 0o644 });
  const key = loadOrCreateSecretsKey(file);
  expect(key).toMatch(/^local:[A-Za-z0-9+/]{43}=$/);
  expect(loadOrCreateSecretsKey(file)).toBe(key);
  expect(statSync(file).mode & 0o077).toBe(0);
});

test("one that is there and cannot be read is not replaced", () => {
  mkdirSync(file);
  expect(() => loadOrCreateSecretsKey(file)).toThrow("EISDIR");
});
