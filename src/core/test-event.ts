/**
 * A test send delivers one event of this type to one endpoint. No producer may publish it and no pattern matches it. It
 * belongs to the relay itself: its delivery names the relay's source, and a subscription that was never anybody's.
 */
export const TEST_EVENT_TYPE = "hooklane.test";

export const TEST_PAYLOAD = '{"test":true}';

/** An endpoint's subscription to test events, made by whoever asks first. */
export function testSubscriptionId(endpointId: string): string {
  return endpointId.replace(/^ep_/, "sub_");
}

/** Whether a delivery is a test send, which gets one attempt, whatever comes of it. Its replays are deliveries like others. */
export function isTestSend(eventType: string, replayNo: number): boolean {
  return eventType === TEST_EVENT_TYPE && replayNo === 0;
}
