type Row = Record<string, any>;

/** As a report has them: of none null, and never 0. */
interface StoredPercentiles {
  count: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/**
 * Common table expressions that give `measured`: for each `grp` of `value (grp, measure, n)` the count and the percentiles of its
 * measures 0 to `measures` - 1. Nearest rank: the smallest value that so many percent of all do not exceed. Values are counted before
 * they are ranked, since there are far fewer different ones than rows.
 */
export function measuredFrom(measures: number): string {
  return `
  counted as (select grp, measure, n as value, count(*) as times from value group by grp, measure, n),
  ranked as (
    select grp, measure, value, sum(times) over (partition by grp, measure order by value) as upto,
      sum(times) over (partition by grp, measure) as total
    from counted),
  measured as (
    select grp, ${eachMeasure(measures, (i) => [
      `max(iif(measure = ${i}, total, null)) as n${i}`,
      ...[50, 95, 99].map(
        (percent) =>
          `min(iif(measure = ${i} and upto >= (total * ${percent} + 99) / 100, value, null)) as p${percent}_${i}`,
      ),
    ])}
    from ranked group by grp)`;
}

/** The columns of `measured` besides `grp`. */
export function measuredColumns(measures: number): string {
  return eachMeasure(measures, (i) => [`n${i}`, `p50_${i}`, `p95_${i}`, `p99_${i}`]);
}

export function toPercentiles(row: Row, measure: number): StoredPercentiles {
  return {
    count: row[`n${measure}`] ?? 0,
    p50: row[`p50_${measure}`],
    p95: row[`p95_${measure}`],
    p99: row[`p99_${measure}`],
  };
}

function eachMeasure(measures: number, columns: (i: number) => string[]): string {
  return Array.from({ length: measures }, (_, i) => columns(i).join(", ")).join(",\n      ");
}
