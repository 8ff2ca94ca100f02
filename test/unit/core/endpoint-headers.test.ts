import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkHeaderName,
  formatStoredHeaders,
  headerContext,
  isHeaderValue,
  isHidden,
  isWriteOnlyHeader,
  MAX_HEADERS,
  mergeHeaders,
  parseStoredHeaders,
  type HeaderEdit,
  type StoredHeader,
} from "../../../src/core/endpoint-headers.ts";
import { HOP_HEADER } from "../../../src/core/hops.ts";
import { eventHeaders, signatureHeaders } from "../../../src/core/outbound.ts";

const judge = (name: string) => {
  const checked = checkHeaderName(name);
  return checked.ok ? "allowed" : checked.error;
};

describe("names", () => {
  test.each(
    "X-Team Authorization X-Api-Key Accept Accept-Language Date Origin Referer Idempotency-Key traceparent X-Signature X-Request-Id x a Forwarded-For Webhook Content Cookies Hostname Cf Ce X-Webhooks X-Forward Proxy Trailing Upgrade-Insecure-Requests !#$%&'*+-.^_`|~09 _ __proto__ constructor".split(
      " ",
    ),
  )("%s is allowed", (name) => expect(judge(name)).toBe("allowed"));

  const reserved = [
    // hop-by-hop and framing
    ..."Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade HTTP2-Settings Alt-Used".split(" "),
    ..."Proxy-Connection Proxy-Authorization Proxy-Authenticate".split(" "),
    // the request's own
    ..."Host User-Agent Expect Via Max-Forwards Accept-Encoding".split(" "),
    ..."Cookie Cookie2 Set-Cookie Set-Cookie2".split(" "),
    ..."Content-Type Content-Length Content-Encoding Content-MD5 Content-Digest Content-Anything".split(" "),
    // the relay's own, and CloudEvents'
    ..."webhook-id webhook-timestamp webhook-signature Webhook-Anything X-Webhook-Source X-Webhook-Anything".split(" "),
    ..."ce-id ce-type CE-Anything".split(" "),
    HOP_HEADER,
    // who is calling
    ..."CF-Connecting-IP CF-Ray cf-anything X-Forwarded-For X-Forwarded-Host X-Forwarded-Anything".split(" "),
    ..."Forwarded X-Real-IP True-Client-IP".split(" "),
  ];
  test.each(reserved)("%s is reserved, in any case, and with underscores", (name) => {
    const spellings = [name, name.toLowerCase(), name.toUpperCase(), name.replaceAll("-", "_"), name.replace("-", "_")];
    expect(spellings.map(judge)).toEqual(spellings.map(() => "reserved_name"));
  });

  test("every header that the relay sets is reserved", () => {
    const event = {
      id: "evt_1",
      type: "a.b",
      sourceName: "s",
      schemaVersion: 1,
      orderingKey: "k",
      causeEventId: "evt_0",
      occurredAt: 0,
      relayedAt: 0,
      contentType: "application/json",
      contentEncoding: null,
      payloadIsJson: true,
      hopCount: 0,
    };
    const ref = { eventId: "evt_1", endpointId: "ep_1", replayNo: 0 };
    const set = [
      ...eventHeaders(event, ref, 1, 0),
      ...signatureHeaders(ref, 0, ""),
      ["Content-Type"],
      ["Content-Encoding"],
    ];
    expect(set.map(([name]) => [name, judge(name!)])).toEqual(set.map(([name]) => [name, "reserved_name"]));
  });

  test.each([
    "",
    " ",
    "a b",
    "a:",
    ":path",
    "a\r\nb",
    "a\u0000",
    "a\u007f",
    "é",
    "a(b)",
    'a"b',
    "a,b",
    "a/b",
    "a@b",
    "a[b]",
    "a{b}",
    "a".repeat(129),
  ])("%j is no name", (name) => expect(judge(name)).toBe("malformed_name"));

  test("a name may have 128 characters", () => expect(judge("a".repeat(128))).toBe("allowed"));

  test("every name that is allowed is one that a request can carry", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii", maxLength: 12 }), (name) => {
        if (judge(name) === "malformed_name") return;
        expect([...new Headers([[name, "v"]]).keys()]).toEqual([name.toLowerCase()]);
      }),
      { seed: 1, numRuns: 3_000 },
    );
  });
});

describe("values", () => {
  test.each(["a", "Bearer abc.def", "a  b", "~!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}", "x".repeat(1024)])(
    "%j is one",
    (value) => expect(isHeaderValue(value)).toBe(true),
  );
  test.each([
    "",
    " ",
    " a",
    "a ",
    "a\tb",
    "a\nb",
    "a\r\nX: y",
    "a\u0000",
    "a\u007f",
    "é",
    "a\u00a0b",
    "x".repeat(1025),
  ])("%j is none", (value) => expect(isHeaderValue(value)).toBe(false));

  test("every value that is allowed arrives as it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii", maxLength: 12 }), (value) => {
        if (isHeaderValue(value)) expect(new Headers([["X", value]]).get("X")).toBe(value);
      }),
      { seed: 1, numRuns: 3_000 },
    );
  });
});

test.each(
  "Authorization X-Authorization X_AUTHORIZATION X-Api-Key x-apikey Api-Key X-Auth X-Auth-Token Auth X-Access-Token X-Secret X-Client-Secret X-Session-Id Ocp-Apim-Subscription-Key X-Password X-Passwd X-Credential X-Vault-Token X-Gitlab-Token".split(
    " ",
  ),
)("the value of %s is write-only", (name) => expect(isWriteOnlyHeader(name)).toBe(true));

test.each("X-Team Accept X-Author Origin X-Request-Id Idempotency X-Tenant traceparent".split(" "))(
  "the value of %s is shown",
  (name) => expect(isWriteOnlyHeader(name)).toBe(false),
);

describe("a change", () => {
  const team: StoredHeader = { name: "X-Team", value: "orders" };
  const auth: StoredHeader = { name: "Authorization", wrapped: "AQ==" };
  const merge = (current: StoredHeader[], edits: HeaderEdit[]) => {
    const merged = mergeHeaders(current, edits);
    return merged.ok ? merged.value : merged.error;
  };

  test("leaves what it does not name", () => {
    const added: HeaderEdit = { name: "X-New", to: { value: "n" } };
    expect(merge([team, auth], [])).toEqual([team, auth]);
    expect(merge([team, auth], [added])).toEqual([team, auth, { name: "X-New", value: "n" }]);
  });

  test("replaces by name in any case, and takes the new spelling", () => {
    expect(merge([team, auth], [{ name: "x-team", to: { value: "b" } }])).toEqual([
      { name: "x-team", value: "b" },
      auth,
    ]);
    const rewrapped: HeaderEdit = { name: "AUTHORIZATION", to: { wrapped: "Ag==" } };
    expect(merge([team, auth], [rewrapped])).toEqual([team, { name: "AUTHORIZATION", wrapped: "Ag==" }]);
  });

  test("clears by name in any case, and what is not there is clear", () => {
    expect(merge([team, auth], [{ name: "x-TEAM", to: "clear" }])).toEqual([auth]);
    expect(merge([team], [{ name: "X-None", to: "clear" }])).toEqual([team]);
  });

  test("keeps a hidden value that is sent back redacted, and refuses the mark where there is none", () => {
    expect(merge([team, auth], [{ name: "authorization", to: "keep" }])).toEqual([team, auth]);
    expect(merge([team], [{ name: "Authorization", to: "keep" }])).toEqual({
      reason: "nothing_to_keep",
      name: "Authorization",
    });
    expect(merge([team], [{ name: "X-Team", to: "keep" }])).toEqual({ reason: "nothing_to_keep", name: "X-Team" });
  });

  test(`leaves ${MAX_HEADERS} headers at most, counted when it is done`, () => {
    const full = Array.from({ length: MAX_HEADERS }, (_, i): StoredHeader => ({ name: `X-${i}`, value: "v" }));
    const add: HeaderEdit = { name: "X-More", to: { value: "v" } };
    expect(merge(full, [add])).toEqual({ reason: "too_many" });
    expect(merge(full, [add, { name: "X-0", to: "clear" }])).toHaveLength(MAX_HEADERS);
    expect(merge(full, [{ name: "x-0", to: { value: "w" } }])).toHaveLength(MAX_HEADERS);
  });

  test("that is made again changes nothing", () => {
    const name = fc.constantFrom("a", "A", "b", "x-api-key");
    const to = fc.oneof(fc.constant("clear" as const), fc.record({ value: fc.constantFrom("1", "2") }));
    fc.assert(
      fc.property(fc.array(fc.record({ name, to }), { maxLength: 5 }), (edits) => {
        const once = merge([team, auth], edits) as StoredHeader[];
        const again = merge(once, edits) as StoredHeader[];
        const sorted = (headers: StoredHeader[]) => headers.toSorted((a, b) => (a.name < b.name ? -1 : 1));
        expect(sorted(again)).toEqual(sorted(once));
        expect(new Set(once.map(({ name: n }) => n.toLowerCase())).size).toBe(once.length);
      }),
      { seed: 1 },
    );
  });
});

describe("the stored form", () => {
  test("gives back what was stored, whatever its names", () => {
    const headers: StoredHeader[] = [
      { name: "X-Team", value: "orders" },
      { name: "Authorization", wrapped: "AQ==" },
      { name: "__proto__", value: "p" },
      { name: "constructor", value: "c" },
    ];
    expect(parseStoredHeaders(formatStoredHeaders(headers))).toEqual(headers);
    expect(formatStoredHeaders([])).toBe("{}");
    expect(parseStoredHeaders("{}")).toEqual([]);
  });

  test.each(["", "null", "[]", '"x"', '{"A":1}', '{"A":null}', '{"A":{}}', '{"A":{"wrapped":1}}'])(
    "%j is none",
    (text) => expect(() => parseStoredHeaders(text)).toThrow(),
  );

  test("a secret that was written there as it is stays hidden", () => {
    expect(isHidden({ name: "Authorization", value: "Bearer x" })).toBe(true);
    expect(isHidden({ name: "X-Team", wrapped: "AQ==" })).toBe(true);
    expect(isHidden({ name: "X-Team", value: "orders" })).toBe(false);
  });

  test("a wrapped value is bound to its tenant, endpoint and name in any case", () => {
    expect(headerContext("ten_1", "ep_1", "X-Api-Key")).toBe(headerContext("ten_1", "ep_1", "x-api-key"));
    const [context, ...others] = [
      headerContext("ten_1", "ep_1", "a"),
      headerContext("ten_2", "ep_1", "a"),
      headerContext("ten_1", "ep_2", "a"),
      headerContext("ten_1", "ep_1", "b"),
    ];
    expect(others).not.toContain(context);
  });
});
