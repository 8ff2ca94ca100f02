import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const docs = resolve(import.meta.dirname, "../../../docs");
const page = readFileSync(resolve(docs, "reliability.md"), "utf8");

/** Of a link to a test, the titles that are quoted behind it. */
const NAMED = /\]\((\.\.\/test\/[^)]+\.test\.ts)\)((?:,? "[^"]+")*)/g;

test("every test that the page names by its title is in the file it names", () => {
  const named = [...page.matchAll(NAMED)].flatMap(([, file, titles]) =>
    [...titles!.matchAll(/"([^"]+)"/g)].map(([, title]) => ({ file: file!, title: title! })),
  );
  expect(named.length).toBeGreaterThan(25);
  const missing = named.filter(({ file, title }) => !readFileSync(resolve(docs, file), "utf8").includes(`"${title}`));
  expect(missing).toEqual([]);
});

test("no promise is without a test", () => {
  const section = page.split("## How it is tried")[0]!;
  const promises = section.split("\n").filter((line) => /^\| (?!Promise|---)/.test(line));
  expect(promises.length).toBeGreaterThan(20);
  expect(promises.filter((line) => !/\.test\.ts\)|\]\(#/.test(line))).toEqual([]);
});
