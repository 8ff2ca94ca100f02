/**
 * A test send delivers one event of this type to one endpoint. No producer may publish it and no pattern matches it. It
 * belongs to the relay itself: its delivery names a source and a subscription that were never anybody's.
 */
export const TEST_EVENT_TYPE = "hooklane.test";

/** What consumers see as the source. */
export const TEST_SOURCE_NAME = "hooklane";

export const TEST_PAYLOAD = '{"test":true}';

/** A tenant's source of test events and an endpoint's subscription to them: one each, whoever asks first. */
export function testSourceId(tenantId: string): string {
  return tenantId.replace(/^ten_/, "src_");
}

export function testSubscriptionId(endpointId: string): string {
  return endpointId.replace(/^ep_/, "sub_");
}

/** Whether a delivery is a test send, which gets one attempt, whatever comes of it. Its replays are deliveries like others. */
export function isTestSend(eventType: string, replayNo: number): boolean {
  return eventType === TEST_EVENT_TYPE && replayNo === 0;
}
