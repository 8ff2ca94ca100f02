import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { KINDS, MEASURED, OTHERWISE } from "./provided.ts";

/** Sums up what all files have run, once they have. */
export default function setup(project: TestProject) {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-histories-"));
  project.provide("totals", folder);
  return () => {
    const parts = readdirSync(folder).map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
    rmSync(folder, { recursive: true });
    if (parts.length === 0) return;
    const sum = (name: string) => parts.reduce((total, part) => total + part[name], 0).toLocaleString("en");
    const ran = ["histories", ...MEASURED].map((name) => `${sum(name)} ${name}`);
    const broken = [...Object.keys(KINDS), OTHERWISE].map((kind) => `${kind} ${sum(kind)}`);
    console.log(`Histories: ${ran.join(", ")}. ${broken.join(", ")}.`);
  };
}
