/** A sample by its name and labels as they stand in the text. */
export type Samples = Map<string, number>;

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\+Inf|-Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;

/**
 * Reads Prometheus' text format 0.0.4 more strictly than Prometheus does; throws where a line, or what it says, is not of it:
 * a family has its HELP and TYPE once and before its samples, which stand together, none of them twice; a counter's name ends
 * in `_total`; a histogram's buckets rise up to `+Inf`, which is its count.
 */
export function parseExposition(text: string): Samples {
  if (!text.endsWith("\n")) throw new Error("The last line does not end.");
  const samples: Samples = new Map();
  const types = new Map<string, string>();
  const helps = new Set<string>();
  let family = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment) {
      const [, kind, name, rest] = comment as unknown as [string, string, string, string];
      if (!NAME.test(name)) throw new Error(`No name: ${line}`);
      if (kind === "HELP") {
        if (helps.has(name)) throw new Error(`Told of twice: ${name}`);
        if (!/^(?:[^\\]|\\[\\n])*$/.test(rest)) throw new Error(`Badly escaped: ${line}`);
        helps.add(name);
        continue;
      }
      if (types.has(name) || !helps.has(name)) throw new Error(`TYPE twice, or before HELP: ${line}`);
      if (!["counter", "gauge", "histogram"].includes(rest)) throw new Error(`No type: ${line}`);
      if ((rest === "counter") !== name.endsWith("_total")) throw new Error(`Only counters end in _total: ${name}`);
      types.set(name, rest);
      family = name;
      continue;
    }
    const sample = SAMPLE.exec(line);
    if (!sample) throw new Error(`Not a line of the format: ${JSON.stringify(line)}`);
    const [, name, labels = "", value] = sample as unknown as [string, string, string | undefined, string];
    const suffixes = types.get(family) === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    if (!suffixes.some((suffix) => name === `${family}${suffix}`)) throw new Error(`Not of ${family}: ${line}`);
    const key = labels === "" ? name : `${name}{${labels}}`;
    if (samples.has(key)) throw new Error(`Twice: ${key}`);
    samples.set(key, value === "+Inf" ? Infinity : Number(value));
  }
  for (const [name, type] of types) if (type === "histogram") checkHistogram(name, samples);
  return samples;
}

function checkHistogram(name: string, samples: Samples): void {
  const buckets = [...samples].flatMap(([key, count]) => {
    const le = new RegExp(`^${name}_bucket\\{le="(.+)"\\}$`).exec(key)?.[1];
    return le === undefined ? [] : [{ bound: le === "+Inf" ? Infinity : Number(le), count }];
  });
  const rises = buckets.every(({ bound, count }, i) => {
    const before = buckets[i - 1];
    return before === undefined || (bound > before.bound && count >= before.count);
  });
  const last = buckets.at(-1);
  if (!rises || last?.bound !== Infinity) throw new Error(`Buckets of ${name} do not rise to +Inf.`);
  if (samples.get(`${name}_count`) !== last.count || !samples.has(`${name}_sum`))
    throw new Error(`${name} does not add up.`);
}
