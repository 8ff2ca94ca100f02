/**
 * Prometheus' text format, version 0.0.4: a family's HELP and TYPE, then its samples.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export interface Sample {
  /** Of a histogram: `_bucket`, `_sum`, `_count`. */
  suffix?: string;
  labels?: Record<string, string>;
  value: number;
}

export interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  /** Without any, the family is left out: nothing is known of it. */
  samples: Sample[];
}

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export function exposition(families: Family[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) =>
      [
        `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
        `# TYPE ${name} ${type}`,
        ...samples.map((sample) => `${name}${sample.suffix ?? ""}${braces(sample.labels)} ${number(sample.value)}`),
      ]
        .map((line) => `${line}\n`)
        .join(""),
    )
    .join("");
}

function braces(labels: Record<string, string> = {}): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length > 0 ? `{${pairs.join(",")}}` : "";
}

const escaped = (value: string) => value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

function number(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
