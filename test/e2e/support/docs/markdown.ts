import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../../..");

/** A fenced block of code. */
export interface Block {
  /** What stands after the fence: `sh`, `json`, … */
  language: string;
  text: string;
  /** Of its first line, from 1. */
  line: number;
}

export interface Doc {
  /** Below the repository's root: `docs/retries.md`. */
  path: string;
  text: string;
  blocks: Block[];
}

/** All that a user may be led by: the pages at the top and those in `docs/`, decisions apart. */
export function docPaths(): string[] {
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  return ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...pages.toSorted().map((name) => `docs/${name}`)];
}

export function readDoc(path: string): Doc {
  const text = readFileSync(join(root, path), "utf8");
  return { path, text, blocks: blocksOf(text) };
}

/** What stands between `<!-- name -->` and `<!-- /name -->`. */
export function marked({ path, text }: Doc, name: string): string {
  const part = text.split(`<!-- ${name} -->\n`)[1]?.split(`<!-- /${name} -->`)[0];
  if (part === undefined) throw new Error(`${path} has nothing marked ${name}`);
  return part;
}

/** The cells of a table's rows, the two header lines left out. */
export function tableRows(table: string): string[][] {
  const lines = table.trim().split("\n");
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

/** The code of the block whose first line names this file. */
export function namedBlock(doc: Doc, file: string): string {
  const block = doc.blocks.find(({ text }) => text.split("\n", 1)[0]!.endsWith(` ${file}`));
  if (!block) throw new Error(`${doc.path} has no block named ${file}`);
  return block.text;
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | null = null;
  for (const [i, line] of text.split("\n").entries()) {
    const fence = /^```(\w*)\s*$/.exec(line);
    if (!fence) {
      if (open) open.text += `${line}\n`;
    } else if (open) {
      blocks.push(open);
      open = null;
    } else {
      open = { language: fence[1]!, text: "", line: i + 2 };
    }
  }
  if (open) throw new Error(`A block is not closed: line ${open.line}`);
  return blocks;
}
