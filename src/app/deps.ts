import type { ApiKeyDeps } from "./api-key/deps.ts";
import type { AuthenticateDeps } from "./authenticate.ts";
import type { CancelDeliveryDeps } from "./delivery/cancel-delivery.ts";
import type { ListDeliveriesDeps } from "./delivery/list-deliveries.ts";
import type { ReadDeliveryDeps } from "./delivery/read-delivery.ts";
import type { ReplayDeliveryDeps } from "./delivery/replay-delivery.ts";
import type { RetryDeliveryDeps } from "./delivery/retry-delivery.ts";
import type { EndpointDeps, SecretDeps } from "./endpoint/deps.ts";
import type { RetryPendingDeps } from "./endpoint/retry-pending.ts";
import type { ReadHealthDeps } from "./endpoint/read-health.ts";
import type { SwitchEndpointDeps } from "./endpoint/switch-endpoint.ts";
import type { TestEndpointDeps } from "./endpoint/test-endpoint.ts";
import type { ErasePayloadDeps } from "./event/erase-payload.ts";
import type { EventTypeDeps } from "./event-type/deps.ts";
import type { ReadEventDeps } from "./event/read-event.ts";
import type { FindDeps } from "./find/find.ts";
import type { ExportAttemptsDeps } from "./export/export-attempts.ts";
import type { ExportDeliveriesDeps } from "./export/export-deliveries.ts";
import type { ExportEventsDeps } from "./export/export-events.ts";
import type { FindSourcePlaceDeps } from "./publish/find-source-place.ts";
import type { PublishDeps } from "./publish/publish-events.ts";
import type { PublishLimitDeps } from "./publish/publish-limit.ts";
import type { NotePublishedDeps } from "./metrics/note-published.ts";
import type { ChangeRoutingDeps } from "./endpoint/change-routing.ts";
import type { ReadLaneDeps } from "./lane/read-lane.ts";
import type { MoveLaneDeps } from "./lane/move-lane.ts";
import type { ReplayDeps } from "./replay/deps.ts";
import type { SkipHeadDeps } from "./lane/skip-head.ts";
import type { ReportDeadLettersDeps } from "./report/dead-letters.ts";
import type { ReportDisabledDeps } from "./report/disabled.ts";
import type { ReportFailuresDeps } from "./report/failures.ts";
import type { ReportUndeliveredDeps } from "./report/undelivered.ts";
import type { ReportAttemptsDeps } from "./report/attempts.ts";
import type { ReportFiltersDeps } from "./report/filters.ts";
import type { ReportLatencyDeps } from "./report/latency.ts";
import type { ReportSchemaVersionsDeps } from "./report/schema-versions.ts";
import type { ReadWebhookKeysDeps } from "./source/read-webhook-keys.ts";
import type { SourceDeps } from "./source/deps.ts";
import type { SubscriptionDeps } from "./subscription/deps.ts";
import type { TestSubscriptionDeps } from "./subscription/test-subscription.ts";
import type { TenantDeps } from "./tenant/deps.ts";

/** What the operator's routes, and a signed publish before its shard is known, need of the central database. */
export type CentralDeps = TenantDeps & FindSourcePlaceDeps & ReadWebhookKeysDeps & Pick<PublishDeps, "maxPayloadBytes">;

/** What a tenant's routes need of the shard it lives in. */
export type ShardDeps = AuthenticateDeps &
  PublishDeps &
  PublishLimitDeps &
  SourceDeps &
  EndpointDeps &
  SecretDeps &
  SwitchEndpointDeps &
  TestEndpointDeps &
  ChangeRoutingDeps &
  ReadHealthDeps &
  ReadLaneDeps &
  SkipHeadDeps &
  MoveLaneDeps &
  SubscriptionDeps &
  TestSubscriptionDeps &
  EventTypeDeps &
  ApiKeyDeps &
  ReadEventDeps &
  ErasePayloadDeps &
  ReadDeliveryDeps &
  ListDeliveriesDeps &
  FindDeps &
  RetryDeliveryDeps &
  RetryPendingDeps &
  ReplayDeliveryDeps &
  CancelDeliveryDeps &
  ReportFailuresDeps &
  ReportDeadLettersDeps &
  ReportUndeliveredDeps &
  ReportDisabledDeps &
  ReportLatencyDeps &
  ReportSchemaVersionsDeps &
  ReportAttemptsDeps &
  ReportFiltersDeps &
  NotePublishedDeps &
  ExportEventsDeps &
  ExportDeliveriesDeps &
  ExportAttemptsDeps &
  ReplayDeps;
