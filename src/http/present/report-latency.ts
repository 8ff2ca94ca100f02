import { z } from "zod";
import type { LatencyGroup, Percentiles } from "../../app/report/latency.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id } from "./fields.ts";
import { reportOf } from "./report.ts";

const PercentilesAnswer = z
  .object({
    count: z.int(),
    p50: z.int().nullable(),
    p95: z.int().nullable(),
    p99: z.int().nullable(),
  })
  .register(ANSWERS, { id: "Percentiles" });

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
    occurred_to_delivered_ms: present(group.occurredToDelivered),
    occurred_to_relayed_ms: present(group.occurredToRelayed),
    relayed_to_first_request_ms: present(group.relayedToFirstRequest),
    limits_wait_ms: present(group.limitsWait),
    relay_lag_ms: present(group.relayLag),
  };
}

const present = ({ count, p50, p95, p99 }: Percentiles) => ({ count, p50, p95, p99 });
