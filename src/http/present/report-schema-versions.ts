import { z } from "zod";
import type { ReportedSubscription, ReportedVersion } from "../../app/report/schema-versions.ts";
import { formatTime } from "../../core/timestamps.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id, known, time } from "./fields.ts";
import { reportOf } from "./report.ts";
import { presentTime } from "./time.ts";

const ReceivedVersionAnswer = z
  .object({ event_type: z.string(), schema_version: z.int(), deliveries: z.int(), last_at: time })
  .register(ANSWERS, { id: "ReceivedVersion" });

const VersionSubscriptionAnswer = z
  .object({
    subscription_id: id("sub"),
    endpoint_id: id("ep"),
    endpoint_disabled_at: time.nullable(),
    event_type_pattern: z.string(),
    filtered: z.boolean(),
    pinned_version: z.int().nullable(),
    decided_by: known(["pin", "recent_event", "registered"]).nullable(),
    withheld: known(["version_not_published", "version_retired", "other_subscription"]).nullable(),
    received: z.array(ReceivedVersionAnswer),
    received_complete: z.boolean(),
  })
  .register(ANSWERS, { id: "VersionSubscription" });

const VersionGroupAnswer = z
  .object({
    event_type: z.string().nullable(),
    schema_version: z.int().nullable(),
    registered: z.boolean(),
    retired_at: time.nullable(),
    events: z.int(),
    last_event_at: time.nullable(),
    subscription_count: z.int(),
    subscriptions: z.array(VersionSubscriptionAnswer),
  })
  .register(ANSWERS, { id: "VersionGroup" });

export const SchemaVersionsAnswer = reportOf("SchemaVersions", VersionGroupAnswer, {
  groups: z.int(),
  types: z.int(),
  types_looked_at: z.int(),
});

export function presentVersionGroup(row: ReportedVersion): z.infer<typeof VersionGroupAnswer> {
  return {
    event_type: row.eventType,
    schema_version: row.schemaVersion,
    registered: row.isRegistered,
    retired_at: presentTime(row.retiredAt),
    events: row.events,
    last_event_at: presentTime(row.lastEventAt),
    subscription_count: row.subscriptionCount,
    subscriptions: row.subscriptions.map(presentSubscription),
  };
}

function presentSubscription(of: ReportedSubscription): z.infer<typeof VersionSubscriptionAnswer> {
  const { subscription } = of;
  return {
    subscription_id: subscription.id,
    endpoint_id: subscription.endpointId,
    endpoint_disabled_at: presentTime(subscription.endpointDisabledAt),
    event_type_pattern: subscription.eventTypePattern,
    filtered: subscription.isFiltered,
    pinned_version: subscription.schemaVersion,
    decided_by: of.decidedBy,
    withheld: of.withheld,
    received: of.received.map(({ type, schemaVersion, deliveries, lastAt }) => ({
      event_type: type,
      schema_version: schemaVersion,
      deliveries,
      last_at: formatTime(lastAt),
    })),
    received_complete: of.receivedComplete,
  };
}
