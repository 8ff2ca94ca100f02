import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FIND_KINDS, parseSought, recognize } from "../../../src/core/find-kinds.ts";
import { attemptId, createEventIds, deliveryId, parseWebhookId, webhookId } from "../../../src/core/ids.ts";

const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
const refs = fc
  .record({
    time: fc.nat(2 ** 47),
    event: random,
    endpoint: fc.stringMatching(/^[0-9a-hjkmnp-tv-z]{16}$/),
    replay: fc.nat(40),
  })
  .map(({ time, event, endpoint, replay }) => ({
    eventId: createEventIds(time, event, 1)[0]!,
    endpointId: `ep_${endpoint}`,
    replayNo: replay,
  }));
const kindsOf = (text: string) => recognize(text).map(({ kind }) => kind);

test("one of our ids is recognized as what it is, and as the idempotency key of whoever took it for one", () => {
  fc.assert(
    fc.property(refs, fc.integer({ min: 1, max: 50 }), (ref, attemptNumber) => {
      const { eventId, endpointId } = ref;
      expect(recognize(eventId)[0]).toEqual({ kind: "event_id", eventId });
      expect(recognize(deliveryId(ref))[0]).toEqual({ kind: "delivery_id", ref, attemptNumber: null });
      expect(recognize(attemptId(deliveryId(ref), attemptNumber))[0]).toEqual({
        kind: "delivery_id",
        ref,
        attemptNumber,
      });
      expect(recognize(webhookId(ref))[0]).toEqual({ kind: "webhook_id", eventId, endpointId });
      for (const text of [eventId, deliveryId(ref), webhookId(ref)]) expect(kindsOf(text)).toContain("idempotency_key");
    }),
  );
});

test("a webhook-id is read back as the event and the endpoint that it was made of", () => {
  fc.assert(
    fc.property(refs, ({ eventId, endpointId }) => {
      expect(parseWebhookId(webhookId({ eventId, endpointId }))).toEqual({ ok: true, value: { eventId, endpointId } });
    }),
  );
});

test("any other text may be each kind that others give", () => {
  expect(kindsOf("order-1001")).toEqual(["idempotency_key", "partner_request_id", "ordering_key"]);
  // What no producer could have published, a receiver may have answered.
  expect(kindsOf("a b")).toEqual(["partner_request_id"]);
  expect(kindsOf("x".repeat(257))).toEqual([]);
});

test("whatever a text is asked for as, it is that or refused", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), fc.constantFrom(...FIND_KINDS), (text, kind) => {
      const sought = parseSought(text, kind);
      if (sought.ok) expect(sought.value.kind).toBe(kind);
    }),
  );
});

describe("refused as a delivery's", () => {
  test.each(["dlv_", "dlv_1:0", "dlv_1:1", "evt_01j00000000000000000000000:1"])("%s", (text) => {
    expect(parseSought(text, "delivery_id").ok).toBe(false);
  });
});
