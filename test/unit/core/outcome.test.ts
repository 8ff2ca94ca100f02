import { describe, expect, test } from "vitest";
import { classifyOutcome, classifyThrown, ERROR_CLASSES } from "../../../src/core/outcome.ts";
import { DEFAULT_RETRY_POLICY } from "../../../src/core/retry-policy.ts";

const CLASSES = ["success", "transient", "rejected", "unreachable"];

function answer(status: number, bodyComplete = true, policy = DEFAULT_RETRY_POLICY) {
  return classifyOutcome({ kind: "response", status, bodyComplete }, policy);
}

describe("complete answers", () => {
  test("every status from 100 to 599 lands in exactly one class, with a known error class", () => {
    for (let status = 100; status <= 599; status += 1) {
      const outcome = answer(status);
      expect(CLASSES, String(status)).toContain(outcome.outcomeClass);
      expect(outcome.errorClass === null).toBe(status >= 200 && status <= 299);
      if (outcome.errorClass !== null) expect(ERROR_CLASSES).toContain(outcome.errorClass);
      expect(outcome.statusCode).toBe(status < 200 ? null : status);
    }
  });

  test("each 2xx is a success", () => {
    for (const status of [200, 201, 202, 204, 226, 299]) {
      const success = { outcomeClass: "success", errorClass: null, statusCode: status };
      expect(answer(status)).toEqual(success);
    }
  });

  test.each([
    [301, "transient", "http_3xx"],
    [304, "transient", "http_3xx"],
    [401, "transient", "http_4xx"],
    [403, "transient", "http_4xx"],
    [404, "transient", "http_4xx"],
    [408, "transient", "http_4xx"],
    [409, "transient", "http_4xx"],
    [425, "transient", "http_4xx"],
    [429, "transient", "rate_limited"],
    [500, "transient", "http_5xx"],
    [503, "transient", "http_5xx"],
    [528, "transient", "http_5xx"],
    [400, "rejected", "http_4xx"],
    [410, "rejected", "gone"],
    [422, "rejected", "http_4xx"],
    [501, "rejected", "http_5xx"],
    [505, "rejected", "http_5xx"],
  ])("%i is %s, %s", (statusCode, outcomeClass, errorClass) => {
    expect(answer(statusCode)).toEqual({ outcomeClass, errorClass, statusCode });
  });

  test("exactly the listed statuses are rejected", () => {
    const rejected = Array.from({ length: 500 }, (_, i) => i + 100).filter(
      (status) => answer(status).outcomeClass === "rejected",
    );
    expect(rejected).toEqual([400, 405, 406, 410, 411, 413, 414, 415, 422, 431, 451, 501, 505]);
  });

  test("the policy's list decides, the status still names the error", () => {
    const policy = { ...DEFAULT_RETRY_POLICY, reject_statuses: [302, 429, 521] };
    expect(answer(302, true, policy)).toMatchObject({ outcomeClass: "rejected", errorClass: "http_3xx" });
    expect(answer(429, true, policy)).toMatchObject({ outcomeClass: "rejected", errorClass: "rate_limited" });
    expect(answer(521, true, policy)).toMatchObject({ outcomeClass: "rejected", errorClass: "connect" });
    expect(answer(410, true, policy)).toMatchObject({ outcomeClass: "transient", errorClass: "gone" });
  });
});

describe("no complete answer", () => {
  test.each([
    [520, "reset"],
    [521, "connect"],
    [522, "timeout"],
    [523, "connect"],
    [524, "timeout"],
    [525, "tls"],
    [526, "tls"],
    [527, "network"],
    [530, "dns"],
  ])("the edge's %i is unreachable by %s, the code kept", (statusCode, errorClass) => {
    expect(answer(statusCode)).toEqual({ outcomeClass: "unreachable", errorClass, statusCode });
  });

  test("a body cut off is unreachable whatever the status, which is kept", () => {
    for (const statusCode of [200, 302, 400, 410, 500]) {
      const cut = { outcomeClass: "unreachable", errorClass: "reset", statusCode };
      expect(answer(statusCode, false)).toEqual(cut);
    }
  });

  test("a deadline passed is a timeout, before and after the headers", () => {
    for (const status of [null, 200, 500]) {
      const late = { outcomeClass: "unreachable", errorClass: "timeout", statusCode: status };
      expect(classifyOutcome({ kind: "timeout", status }, DEFAULT_RETRY_POLICY)).toEqual(late);
    }
  });

  test.each([0, 99, 101, 199, 600, 999, -1, 200.5, Number.NaN])("status %d is no answer", (status) => {
    const none = { outcomeClass: "unreachable", errorClass: "network", statusCode: null };
    expect(answer(status)).toEqual(none);
  });

  test("a fault of ours is internal, a throw is the endpoint's", () => {
    expect(classifyOutcome({ kind: "internal" }, DEFAULT_RETRY_POLICY)).toEqual({
      outcomeClass: "unreachable",
      errorClass: "internal",
      statusCode: null,
    });
    const thrown = { kind: "thrown", message: "connect ECONNREFUSED 127.0.0.1:1" } as const;
    expect(classifyOutcome(thrown, DEFAULT_RETRY_POLICY)).toEqual({
      outcomeClass: "unreachable",
      errorClass: "connect",
      statusCode: null,
    });
  });
});

describe("what was thrown", () => {
  test.each([
    ["Network connection lost.", "network"],
    ["internal error; reference = khh1e1a2nhca9jmoelhndtne", "network"],
    ["Gzip decompression failed.", "network"],
    ["fetch failed", "network"],
    ["", "network"],
    ["DNS lookup failed.; params.host = nowhere.invalid", "dns"],
    ["getaddrinfo ENOTFOUND tls.example.com", "dns"],
    ["getaddrinfo EAI_AGAIN timeout.example.com", "dns"],
    ["failed to lookup address information: Name or service not known", "dns"],
    ["connect ECONNREFUSED 10.0.0.1:443", "connect"],
    ["connect(): Connection refused", "connect"],
    ["connect EHOSTUNREACH 10.0.0.1:443", "connect"],
    ["connect ETIMEDOUT 10.0.0.1:443", "timeout"],
    ["The operation was aborted due to timeout", "timeout"],
    ["Connection timed out", "timeout"],
    ["Connect Timeout Error", "timeout"],
    ["read ECONNRESET", "reset"],
    ["Connection reset by peer", "reset"],
    ["peer disconnected without gracefully ending TCP connection", "reset"],
    ["socket hang up", "reset"],
    ["write EPIPE", "reset"],
    ["TLS handshake failed: received corrupt message", "tls"],
    ["Client network socket disconnected before secure TLS connection was established", "tls"],
    ["unable to verify the first certificate", "tls"],
    ["CERT_HAS_EXPIRED", "tls"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "tls"],
    ["SSL routines: wrong version number", "tls"],
    ["Hostname/IP does not match certificate's altnames: Host: dns.example.com", "tls"],
  ])("%j is %s", (message, errorClass) => {
    expect(classifyThrown(message)).toBe(errorClass);
  });
});
