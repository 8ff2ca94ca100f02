import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { docPaths, readDoc } from "../../e2e/support/docs/markdown.ts";
import packageJson from "../../../package.json" with { type: "json" };

const root = resolve(import.meta.dirname, "../../..");
const pages = docPaths().map(readDoc);

/** Without blocks of code, in which brackets mean other things. */
const prose = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, "");

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(text: string): string[] {
  const headings = [...prose(text).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading]) => heading!);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe.each(pages)("$path", ({ path, text }) => {
  test("every link leads somewhere", () => {
    const links = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
    const broken = links.filter((link) => {
      if (/^https?:/.test(link)) return false;
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? join(root, path) : resolve(root, dirname(path), file);
      if (relative(root, target).startsWith("..") || !existsSync(target)) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(target, "utf8")).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  test("every npm script that is named exists", () => {
    const named = [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name]) => name!);
    expect(named.filter((name) => !(name in packageJson.scripts))).toEqual([]);
  });
});
