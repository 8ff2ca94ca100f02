import { expect, test } from "vitest";
import { marked, readDoc } from "../../e2e/support/docs/markdown.ts";
import { METHODS, FUNCTIONS } from "../../../src/core/filter/functions.ts";
import * as language from "../../../src/core/filter/language.ts";
import { MAX_FILTER_CHARACTERS } from "../../../src/core/quotas.ts";
import { verdict } from "../core/filter/support.ts";

const page = readDoc("docs/filters.md");

/** Cells of a table in which `\|` is a bar. */
const rowsOf = (table: string) =>
  table
    .trim()
    .split("\n")
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("\\|", "|")),
    );
const code = (cell: string) => /^`(.*)`$/.exec(cell)![1]!;

const examples = rowsOf(marked(page, "examples"));

test.each(examples)("example: %s of %s is a %s", (filter, payload, result) => {
  // The page's events are of the type and source that its examples ask for.
  expect(verdict(code(filter!), code(payload!))).toBe(/fails: `(\w+)`/.exec(result!)?.[1] ?? result);
});

test("the examples are as many as the page has rows, and show each word of a result", () => {
  expect(examples.length).toBeGreaterThan(25);
  const words = new Set(examples.map(([, , result]) => result!.split(":")[0]));
  expect([...words].toSorted()).toEqual(["absent", "fails", "match", "no match"]);
});

test("every function, method and field of an event is on the page", () => {
  for (const name of Object.keys(FUNCTIONS)) expect(page.text).toContain(`\`${name}(…)\``);
  for (const name of Object.keys(METHODS)) expect(page.text).toMatch(new RegExp(`\`\\.${name}\\((…)?\\)\``));
  for (const name of Object.keys(language.EVENT_FIELDS)) expect(page.text).toContain(`\`${name}\``);
});

test("every bound is on the page as it is kept", () => {
  const text = page.text.split("## Bounds")[1]!.split("## Trying")[0]!;
  const { MAX_FILTER_LENGTH, MAX_FILTER_NODES, MAX_FILTER_DEPTH, MAX_FILTER_ELEMENTS, MAX_FILTER_STEPS } = language;
  const bounds = [MAX_FILTER_LENGTH, MAX_FILTER_NODES, MAX_FILTER_DEPTH, MAX_FILTER_ELEMENTS, MAX_FILTER_STEPS];
  const together = [MAX_FILTER_CHARACTERS, language.MAX_EVENT_STEPS, language.MAX_REQUEST_STEPS];
  for (const bound of [...bounds, ...together]) expect(text).toContain(`| ${bound.toLocaleString("en-US")}`);
  expect(text).toContain(`for every ${language.CHARACTERS_PER_STEP}`);
  expect(page.text).toContain(language.MAX_PAYLOAD_VALUES.toLocaleString("en-US"));
  expect(page.text).toContain(`up to ${language.MAX_INTEGER_DIGITS} digits`);
});
