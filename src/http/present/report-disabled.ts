import { z } from "zod";
import type { Disabled } from "../../app/report/disabled.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, time } from "./fields.ts";
import { reportOf } from "./report.ts";
import { presentTime } from "./time.ts";

const DisabledRowAnswer = z
  .object({
    endpoint_id: id("ep"),
    subscription_id: id("sub").nullable(),
    last_disabled_at: time,
    disabled_at: time.nullable(),
    disabled_reason: known(["operator", "gone", "failing"]).nullable(),
  })
  .register(ANSWERS, { id: "DisabledRow" });
type DisabledRowAnswer = z.infer<typeof DisabledRowAnswer>;

export const DisabledAnswer = reportOf("Disabled", DisabledRowAnswer, {});

export function presentDisabled(row: Disabled): DisabledRowAnswer {
  return {
    endpoint_id: row.endpointId,
    subscription_id: row.subscriptionId,
    last_disabled_at: formatTime(row.lastDisabledAt),
    disabled_at: presentTime(row.disabledAt),
    disabled_reason: row.disabledReason,
  };
}
