import { expect, test } from "vitest";
import { checkDestination } from "../../src/core/url-guard.ts";
import { anywhere, publicOnly, SPELLINGS } from "../unit/core/support/url-spellings.ts";

test("the URL parser of this runtime reads every spelling as the one of the unit tests does", () => {
  const answers = SPELLINGS.map(([written]) => [
    written,
    ...[publicOnly, anywhere].map((options) => {
      const result = checkDestination(written, options);
      return result.ok ? result.value.url : result.error.reason;
    }),
  ]);
  expect(answers).toEqual(SPELLINGS);
});
