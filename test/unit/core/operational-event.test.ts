import { describe, expect, test } from "vitest";
import { hopsOf, operationalPayload, type RaisedEvent } from "../../../src/core/operational-event.ts";

const AT = Date.UTC(2026, 10, 30, 12, 0, 0, 7);
const AT_TEXT = "2026-11-30T12:00:00.007Z";

const DEAD: RaisedEvent = {
  id: "dead_letter:dlv_1",
  type: "hooklane.delivery.dead_letter",
  raisedAt: AT,
  facts: {
    event_id: "evt_01k7xq3v5h0000000000000001",
    event_type: "order.created",
    hop_count: 2,
    endpoint_id: "ep_0123456789abcdef",
    replay_no: 1,
    subscription_id: "sub_0123456789abcdef",
    final_outcome: "exhausted",
    attempt_count: 10,
    last_status_code: null,
    last_error_class: "timeout",
  },
};

const DISABLED: RaisedEvent = {
  id: "disabled:ep_0123456789abcdef:4",
  type: "hooklane.endpoint.disabled",
  raisedAt: AT,
  facts: { endpoint_id: "ep_0123456789abcdef", reason: "gone" },
};

const FAILING: RaisedEvent = {
  id: `failing:ep_0123456789abcdef:${AT - 1}`,
  type: "hooklane.endpoint.failing",
  raisedAt: AT + 3_600_000,
  facts: { endpoint_id: "ep_0123456789abcdef", failing_since: AT, last_status_code: 503, last_error_class: "http_5xx" },
};

describe("what an operational event says", () => {
  test("a dead letter: which delivery of what to whom, how it ended, and when", () => {
    expect(operationalPayload(DEAD)).toEqual({
      delivery_id: "dlv_01k7xq3v5h00000000000000010123456789abcdef1",
      event_id: "evt_01k7xq3v5h0000000000000001",
      event_type: "order.created",
      endpoint_id: "ep_0123456789abcdef",
      subscription_id: "sub_0123456789abcdef",
      final_outcome: "exhausted",
      attempt_count: 10,
      last_status_code: null,
      last_error_class: "timeout",
      dead_at: AT_TEXT,
    });
  });

  test("a disabled endpoint: which, why and when", () => {
    expect(operationalPayload(DISABLED)).toEqual({
      endpoint_id: "ep_0123456789abcdef",
      reason: "gone",
      disabled_at: AT_TEXT,
    });
  });

  test("a failing endpoint: which, since when, and what it last answered", () => {
    expect(operationalPayload(FAILING)).toEqual({
      endpoint_id: "ep_0123456789abcdef",
      failing_since: AT_TEXT,
      last_status_code: 503,
      last_error_class: "http_5xx",
    });
  });

  test.each([DEAD, DISABLED, FAILING])("$type: what else was noted stays in the ledger", (raised) => {
    const facts = { ...raised.facts, url: "https://a.example/?token=s3cret", payload: "s3cret" };
    expect(JSON.stringify(operationalPayload({ ...raised, facts }))).not.toContain("s3cret");
  });

  test("the event of a dead letter has come through as many relays as the event that died", () => {
    expect(hopsOf(DEAD)).toBe(2);
    expect(hopsOf(DISABLED)).toBe(0);
  });
});
