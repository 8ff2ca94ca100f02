import { z } from "zod";
import { parseReportWindow } from "../../core/report.ts";

/** How far back a report looks. */
const Window = z
  .string()
  .transform((text, context) => {
    const parsed = parseReportWindow(text);
    if (parsed.ok) return parsed.value;
    context.addIssue({ code: "custom", message: "must be a length of time such as 15m, 1h or 7d, at most 365d" });
    return z.NEVER;
  })
  .meta({ jsonSchema: { type: "string", pattern: "^[1-9][0-9]{0,7}[smhd]$" } });

/** The query of a report that has no other parameters. */
export const ReportInput = z.strictObject({ window: Window.optional() });
