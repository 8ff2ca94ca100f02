import { z } from "zod";
import type { LatencyGroup } from "../../app/report/latency.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id } from "./fields.ts";
import { PercentilesAnswer, presentPercentiles } from "./percentiles.ts";
import { reportOf } from "./report.ts";

const LatencyGroupAnswer = z
  .object({
    source_id: id("src").nullable(),
    source_name: z.string().nullable(),
    endpoint_id: id("ep").nullable(),
    events: z.int(),
    undelivered_events: z.int(),
    deliveries: z.int(),
    delivered: z.int(),
    open: z.int(),
    occurred_to_delivered_ms: PercentilesAnswer,
    occurred_to_relayed_ms: PercentilesAnswer,
    relayed_to_first_request_ms: PercentilesAnswer,
    limits_wait_ms: PercentilesAnswer,
    relay_lag_ms: PercentilesAnswer,
  })
  .register(ANSWERS, { id: "LatencyGroup" });
type LatencyGroupAnswer = z.infer<typeof LatencyGroupAnswer>;

export const LatencyAnswer = reportOf("Latency", LatencyGroupAnswer, { groups: z.int() });

export function presentLatencyGroup(group: LatencyGroup): LatencyGroupAnswer {
  return {
    source_id: group.sourceId,
    source_name: group.sourceName,
    endpoint_id: group.endpointId,
    events: group.events,
    undelivered_events: group.undeliveredEvents,
    deliveries: group.deliveries,
    delivered: group.delivered,
    open: group.open,
    occurred_to_delivered_ms: presentPercentiles(group.occurredToDelivered),
    occurred_to_relayed_ms: presentPercentiles(group.occurredToRelayed),
    relayed_to_first_request_ms: presentPercentiles(group.relayedToFirstRequest),
    limits_wait_ms: presentPercentiles(group.limitsWait),
    relay_lag_ms: presentPercentiles(group.relayLag),
  };
}
