import { expect, test } from "vitest";
import {
  harmfulRules,
  parseLifecycleRules,
  planRules,
  WANTED_RULES,
  type LifecycleRule,
} from "../../../scripts/deploy/lifecycle.ts";

const rule = (over: Partial<LifecycleRule>): LifecycleRule => ({
  name: "theirs",
  enabled: true,
  prefix: "",
  action: "(none)",
  ...over,
});
const asWanted = WANTED_RULES.map(({ name, prefix, expireDays }) =>
  rule({ name, prefix, action: `Expire objects after ${expireDays} days` }),
);

test("rules are read as wrangler prints them", () => {
  const printed = `
 ⛅️ wrangler 4.156.2
────────────────────
Listing lifecycle rules for bucket 'b'...
name:     Default Multipart Abort Rule
enabled:  Yes
prefix:   (all prefixes)
action:   Abort incomplete multipart uploads after 7 days

name:     hooklane-1d
enabled:  No
prefix:   1d/
action:   Expire objects after 3 days, Transition to Infrequent Access after 1 days
`;
  expect(parseLifecycleRules(printed)).toEqual([
    rule({ name: "Default Multipart Abort Rule", action: "Abort incomplete multipart uploads after 7 days" }),
    {
      name: "hooklane-1d",
      enabled: false,
      prefix: "1d/",
      action: "Expire objects after 3 days, Transition to Infrequent Access after 1 days",
    },
  ]);
  expect(parseLifecycleRules("There are no lifecycle rules for bucket 'b'.")).toEqual([]);
});

test("each class without its rule gets one; where all are right nothing is done", () => {
  expect(planRules([])).toEqual({ remove: [], add: WANTED_RULES });
  expect(planRules([...asWanted, rule({})])).toEqual({ remove: [], add: [] });
});

test.each([
  ["is disabled", { enabled: false }],
  ["has another prefix", { prefix: "3d" }],
  ["has another age", { action: "Expire objects after 3 days" }],
  ["does more", { action: "Expire objects after 7 days, Abort incomplete multipart uploads after 7 days" }],
])("one of ours that %s is made anew, and no other", (_, over) => {
  const [first, second, ...rest] = asWanted;
  expect(planRules([first!, { ...second!, ...over }, ...rest])).toEqual({
    remove: ["hooklane-3d"],
    add: [WANTED_RULES[1]],
  });
});

test.each<[string, Partial<LifecycleRule>, boolean]>([
  ["the whole bucket, before the longest class ends", { action: "Expire objects after 364 days" }, true],
  ["the whole bucket, after it", { action: "Expire objects after 365 days" }, false],
  ["a class, before it ends", { prefix: "30d/", action: "Expire objects after 29 days" }, true],
  ["a class, after it", { prefix: "30d/", action: "Expire objects after 31 days" }, false],
  ["one tenant of a class, before it ends", { prefix: "30d/ten_1/", action: "Expire objects after 7 days" }, true],
  ["the beginning of two prefixes", { prefix: "3", action: "Expire objects after 4 days" }, true],
  ["a day, whatever an object's age", { prefix: "1d/", action: "Expire objects on 2027-01-01" }, true],
  ["somebody else's prefix", { prefix: "backup/", action: "Expire objects after 1 days" }, false],
  ["nothing, being disabled", { enabled: false, action: "Expire objects after 1 days" }, false],
  ["nothing but uploads", { action: "Abort incomplete multipart uploads after 1 days" }, false],
])("a rule of others that expires %s", (_, over, isHarmful) => {
  expect(harmfulRules([...asWanted, rule(over)])).toEqual(isHarmful ? [rule(over)] : []);
});
