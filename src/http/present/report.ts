import { z } from "zod";
import type { Report } from "../../core/report.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { time } from "./fields.ts";
import { presentTime } from "./time.ts";

const ReportWindowAnswer = z.object({ from: time.nullable(), until: time }).register(ANSWERS, { id: "ReportWindow" });

/** The schema of a report, named `<name>Report`; `extra` is what this one says besides. */
export function reportOf<Row extends z.ZodType, Extra extends z.ZodRawShape>(name: string, row: Row, extra: Extra) {
  return z
    .object({
      data: z.array(row),
      window: ReportWindowAnswer,
      complete: z.boolean(),
      complete_from: time.nullable(),
      ...extra,
    })
    .register(ANSWERS, { id: `${name}Report` });
}

/** The one form of every report. */
export function presentReport<T, P>({ data, window, complete, completeFrom }: Report<T>, present: (row: T) => P) {
  return {
    data: data.map(present),
    window: { from: presentTime(window.from), until: formatTime(window.until) },
    complete,
    complete_from: presentTime(completeFrom),
  };
}
