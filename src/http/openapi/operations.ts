import type { Operation } from "./operation.ts";
import { apiKeyOperations } from "./operations/api-keys.ts";
import { deliveryOperations } from "./operations/deliveries.ts";
import { endpointOperations } from "./operations/endpoints.ts";
import { eventOperations } from "./operations/events.ts";
import { eventTypeOperations } from "./operations/event-types.ts";
import { reportOperations } from "./operations/reports.ts";
import { findOperations } from "./operations/find.ts";
import { exportOperations } from "./operations/export.ts";
import { replayOperations } from "./operations/replays.ts";
import { serviceOperations } from "./operations/service.ts";
import { sourceOperations } from "./operations/sources.ts";
import { subscriptionOperations } from "./operations/subscriptions.ts";
import { tenantOperations } from "./operations/tenants.ts";

/** Every route there is, in the order the docs show them. A test compares them with the app's. */
export const OPERATIONS: readonly Operation[] = [
  ...eventOperations,
  ...deliveryOperations,
  ...reportOperations,
  ...findOperations,
  ...exportOperations,
  ...replayOperations,
  ...endpointOperations,
  ...subscriptionOperations,
  ...eventTypeOperations,
  ...sourceOperations,
  ...apiKeyOperations,
  ...tenantOperations,
  ...serviceOperations,
];
