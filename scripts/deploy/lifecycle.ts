import { lifecycleDays, RETENTION_CLASSES_DAYS, retentionPrefix } from "../../src/core/retention.ts";

/** A bucket's rule as `wrangler r2 bucket lifecycle list` prints it. */
export interface LifecycleRule {
  name: string;
  enabled: boolean;
  /** Empty for the whole bucket. */
  prefix: string;
  action: string;
}

export interface WantedRule {
  name: string;
  prefix: string;
  classDays: number;
  expireDays: number;
}

/** One rule a retention class, each one class later than any row can refer to an object of it. */
export const WANTED_RULES: WantedRule[] = RETENTION_CLASSES_DAYS.map((classDays) => ({
  name: `hooklane-${classDays}d`,
  prefix: retentionPrefix(classDays),
  classDays,
  expireDays: lifecycleDays(classDays),
}));

export function parseLifecycleRules(stdout: string): LifecycleRule[] {
  return stdout.split(/\n\s*\n|(?=^name:)/m).flatMap((block) => {
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(block)?.[1]!.trim();
    const name = field("name");
    if (name === undefined) return [];
    const prefix = field("prefix") ?? "";
    return [
      {
        name,
        enabled: field("enabled") === "Yes",
        prefix: prefix === "(all prefixes)" ? "" : prefix,
        action: field("action") ?? "",
      },
    ];
  });
}

/** What to change so that each class has its rule: those of ours that say something else go first. */
export function planRules(present: LifecycleRule[]): { remove: string[]; add: WantedRule[] } {
  const isRight = (rule: LifecycleRule, { prefix, expireDays }: WantedRule) =>
    rule.enabled && rule.prefix === prefix && rule.action === `Expire objects after ${expireDays} days`;
  const add = WANTED_RULES.filter(
    (wanted) => !present.some((rule) => rule.name === wanted.name && isRight(rule, wanted)),
  );
  const names = new Set(present.map(({ name }) => name));
  return { remove: add.flatMap(({ name }) => (names.has(name) ? [name] : [])), add };
}

/** Rules, whoever made them, that would delete payloads while rows still refer to them. */
export function harmfulRules(present: LifecycleRule[]): LifecycleRule[] {
  return present.filter(({ enabled, prefix, action }) => {
    const expiry = /Expire objects (?:after (\S+) days|on \S+)/.exec(action);
    if (!enabled || !expiry) return false;
    // A date says nothing of an object's age.
    const days = expiry[1] === undefined ? 0 : Number(expiry[1]);
    return WANTED_RULES.some(
      (wanted) => (wanted.prefix.startsWith(prefix) || prefix.startsWith(wanted.prefix)) && !(days >= wanted.classDays),
    );
  });
}
