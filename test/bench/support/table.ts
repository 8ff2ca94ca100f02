import type { Row } from "./section.ts";

/** Rows as columns in line: text to the left, numbers to the right. A column that some rows lack is empty there. */
export function formatTable(rows: Row[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [names, ...rows.map((row) => names.map((name) => formatValue(row[name])))];
  const isText = names.map((name) => rows.some((row) => typeof row[name] === "string"));
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => (isText[column] ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function formatValue(value: Row[string] | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "number" && !Number.isFinite(value) ? "?" : String(value);
}

/** To `digits` behind the point. */
export function round(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}

export interface Summary {
  count: number;
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** NaN of nothing. */
export function summarise(values: ArrayLike<number>): Summary {
  const sorted = Float64Array.from(values).toSorted();
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length;
  return { count: sorted.length, mean, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: sorted.at(-1) ?? NaN };
}
