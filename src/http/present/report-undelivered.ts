import { z } from "zod";
import type { Undelivered } from "../../app/report/undelivered.ts";
import { deliveryId } from "../../core/ids.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, time } from "./fields.ts";
import { reportOf } from "./report.ts";

const UndeliveredRowAnswer = z
  .object({ endpoint_id: id("ep"), depth: z.int().nullable(), oldest_at: time, oldest_delivery_id: id("dlv") })
  .register(ANSWERS, { id: "UndeliveredRow" });
type UndeliveredRowAnswer = z.infer<typeof UndeliveredRowAnswer>;

export const UndeliveredAnswer = reportOf("Undelivered", UndeliveredRowAnswer, { groups: z.int() });

export function presentUndelivered(row: Undelivered): UndeliveredRowAnswer {
  return {
    endpoint_id: row.endpointId,
    depth: row.depth,
    oldest_at: formatTime(row.oldestAt),
    oldest_delivery_id: deliveryId(row.oldest),
  };
}
