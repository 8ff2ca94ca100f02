/** Keywords that hold a value, or what is in it, to schemas below. */
import { patternSteps } from "./json-schema-checks.ts";
import {
  fail,
  fits,
  isObject,
  runNode,
  spend,
  type Check,
  type Json,
  type JsonObject,
  type Place,
  type SchemaNode,
} from "./json-schema-node.ts";
import { compileSchemaPattern, type Pattern } from "./json-schema-pattern.ts";

/** Null for what another keyword beside it takes into account. */
type Apply = (given: Json, place: Place) => Check | null;

export const APPLICATORS: Readonly<Record<string, Apply>> = {
  allOf(given, place) {
    const nodes = listOf(given, place);
    return (value, at, run) => nodes.map((node) => runNode(node, value, at, run)).every(Boolean);
  },
  anyOf(given, place) {
    const nodes = listOf(given, place);
    return (value, at, run) =>
      nodes.some((node) => fits(node, value, at, run)) || fail(run, at, "fits none of the schemas of anyOf");
  },
  oneOf(given, place) {
    const nodes = listOf(given, place);
    return (value, at, run) =>
      nodes.filter((node) => fits(node, value, at, run)).length === 1 ||
      fail(run, at, "does not fit exactly one of the schemas of oneOf");
  },
  not(given, place) {
    const node = place.compile(given, place.path);
    return (value, at, run) => !fits(node, value, at, run) || fail(run, at, "fits the schema of not");
  },
  if(given, place) {
    const node = place.compile(given, place.path);
    const branch = (name: string) =>
      Object.hasOwn(place.schema, name)
        ? place.compile(place.schema[name], `${place.path.slice(0, -".if".length)}.${name}`)
        : null;
    const [then, otherwise] = [branch("then"), branch("else")];
    return (value, at, run) => {
      const next = fits(node, value, at, run) ? then : otherwise;
      return next === null || runNode(next, value, at, run);
    };
  },
  // oxlint-disable-next-line unicorn/no-thenable -- nobody awaits this table
  then: partOf("if"),
  else: partOf("if"),

  items(given, place) {
    if (Array.isArray(given)) place.refuse("must be one schema; a list of them is prefixItems");
    const node = place.compile(given, place.path);
    const { prefixItems } = place.schema;
    const first = Array.isArray(prefixItems) ? prefixItems.length : 0;
    return (value, at, run) => {
      if (!Array.isArray(value)) return true;
      let isValid = true;
      for (let i = first; i < value.length; i++) {
        if (!runNode(node, value[i]!, { parent: at, key: i }, run)) isValid = false;
      }
      return isValid;
    };
  },
  prefixItems(given, place) {
    const nodes = listOf(given, place);
    return (value, at, run) => {
      if (!Array.isArray(value)) return true;
      return nodes
        .slice(0, value.length)
        .map((node, i) => runNode(node, value[i]!, { parent: at, key: i }, run))
        .every(Boolean);
    };
  },
  contains(given, place) {
    const node = place.compile(given, place.path);
    const least = countBeside(place, "minContains") ?? 1;
    const most = countBeside(place, "maxContains") ?? Infinity;
    return (value, at, run) => {
      if (!Array.isArray(value)) return true;
      const count = value.filter((one) => fits(node, one, at, run)).length;
      return (count >= least && count <= most) || fail(run, at, "has too few or too many entries that fit contains");
    };
  },
  minContains: partOf("contains"),
  maxContains: partOf("contains"),

  properties: membersCheck,
  patternProperties: membersCheckUnless("properties"),
  additionalProperties: membersCheckUnless("properties", "patternProperties"),
  propertyNames(given, place) {
    const node = place.compile(given, place.path);
    return (value, at, run) => {
      if (!isObject(value)) return true;
      const keys = Object.keys(value);
      return keys.map((key) => runNode(node, key, { parent: at, key }, run)).every(Boolean);
    };
  },
  dependentSchemas(given, place) {
    const nodes = byName(given, place, place.path);
    return (value, at, run) => {
      if (!isObject(value)) return true;
      spend(run, nodes.size);
      let isValid = true;
      for (const [name, node] of nodes) {
        if (Object.hasOwn(value, name) && !runNode(node, value, at, run)) isValid = false;
      }
      return isValid;
    };
  },
};

/** `properties`, `patternProperties` and `additionalProperties` of one schema: what is additional depends on the others. */
function membersCheck(_: Json, place: Place): Check {
  const { schema } = place;
  const under = (keyword: string) => `${place.path.slice(0, place.path.lastIndexOf("."))}.${keyword}`;
  const named = byName(schema["properties"] ?? {}, place, under("properties"));
  const patterned: [Pattern, SchemaNode][] = [];
  for (const [source, node] of byName(schema["patternProperties"] ?? {}, place, under("patternProperties"))) {
    place.countPattern();
    const pattern = compileSchemaPattern(source);
    if (!pattern.ok) place.refuse(pattern.error, `${under("patternProperties")}.${source}`);
    else patterned.push([pattern.value, node]);
  }
  const hasRest = Object.hasOwn(schema, "additionalProperties");
  const rest = hasRest ? place.compile(schema["additionalProperties"], under("additionalProperties")) : null;
  return (value, at, run) => {
    if (!isObject(value)) return true;
    let isValid = true;
    const hold = (node: SchemaNode, key: string) => {
      if (!runNode(node, value[key]!, { parent: at, key }, run)) isValid = false;
    };
    for (const key of Object.keys(value)) {
      spend(run, 1);
      const own = named.get(key);
      if (own) hold(own, key);
      let isKnown = own !== undefined;
      for (const [pattern, node] of patterned) {
        spend(run, patternSteps(pattern.size, key));
        if (!pattern.test(key)) continue;
        isKnown = true;
        hold(node, key);
      }
      if (!isKnown && rest) hold(rest, key);
    }
    return isValid;
  };
}

/** Of these three keywords the first that is there makes the check. */
function membersCheckUnless(...others: string[]): Apply {
  return (given, place) =>
    others.some((name) => Object.hasOwn(place.schema, name)) ? null : membersCheck(given, place);
}

/** Says nothing where the keyword it goes with is not there, as JSON Schema has it. */
function partOf(keyword: string): Apply {
  return (given, place) => {
    // What would never be looked at is still to be a schema, or a number.
    if (!Object.hasOwn(place.schema, keyword)) place.refuse(`belongs to ${keyword}`);
    if (keyword === "contains" && !isCount(given)) place.refuse("must be a whole number, 0 or more");
    return null;
  };
}

function countBeside(place: Place, name: string): number | null {
  const given = place.schema[name];
  return isCount(given) ? given : null;
}

function isCount(given: Json | undefined): given is number {
  return Number.isInteger(given) && (given as number) >= 0;
}

function listOf(given: Json, place: Place): SchemaNode[] {
  if (!Array.isArray(given) || given.length === 0) return place.refuse("must be a list of schemas");
  return given.map((one, i) => place.compile(one, `${place.path}.${i}`));
}

function byName(given: Json, place: Place, path: string): Map<string, SchemaNode> {
  if (!isObject(given)) return place.refuse("must be schemas, by name", path);
  return new Map(
    Object.entries(given as JsonObject).map(([name, one]) => [name, place.compile(one, `${path}.${name}`)]),
  );
}
