import { readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");

/** Whose figures these are. */
export function describeMachine(): Record<string, string | number> {
  return {
    hooklane: versionOf("."),
    workerd: versionOf("node_modules/workerd"),
    miniflare: versionOf("node_modules/miniflare"),
    node: process.versions.node,
    system: `${process.platform} ${release()}`,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 2 ** 30),
  };
}

function versionOf(folder: string): string {
  return JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")).version;
}
