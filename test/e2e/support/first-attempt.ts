import { createEndpoint, createTenant, deliveryWhen, publish } from "./client.ts";
import { withReceiver, type Handler } from "./receiver.ts";

/**
 * One event to a receiver that behaves so: its delivery, attempts included, once the first attempt is on record. A retry
 * would come in an hour, so nothing changes afterwards.
 */
export function firstAttempt(relayUrl: string, handler: Handler, settings: Record<string, unknown> = {}): Promise<any> {
  return withReceiver(async (receiver) => {
    receiver.handle(handler);
    return firstAttemptAt(relayUrl, { url: receiver.url, ...settings });
  });
}

/** The same for an endpoint with any URL. */
export async function firstAttemptAt(
  relayUrl: string,
  settings: { url: string } & Record<string, unknown>,
): Promise<any> {
  const tenant = await createTenant(relayUrl);
  await createEndpoint(tenant, { retry_policy: { delays_seconds: [3600], jitter: 0 }, ...settings });
  const { deliveries } = await publish(tenant);
  return deliveryWhen(
    tenant,
    deliveries[0].id,
    ({ status, attempt_count }) => attempt_count > 0 && status !== "processing",
  );
}
