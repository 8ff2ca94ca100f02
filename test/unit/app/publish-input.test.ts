import { describe, expect, test } from "vitest";
import { AppError } from "../../../src/app/app-error.ts";
import type { Publisher } from "../../../src/app/publish/publish-config.ts";
import { checkItem, readItem, type PublishItem } from "../../../src/app/publish/publish-input.ts";
import { parsePublishBody } from "../../../src/core/publish-body.ts";

const keys = { version: 0, current: null, previous: null, previousValidUntil: null };
const SHOP = { id: "src_0000000000000001", name: "shop", keys, allows: (type: string) => type !== "order.secret" };
const CRM = { id: "src_0000000000000002", name: "crm", keys, allows: () => true };
const MAX_PAYLOAD_BYTES = 10;

/** With a key of the source given, or an admin's. */
function publisher(sourceId: string | null): Publisher {
  const config = { tenantId: "ten_a", plan: "free" as const, isSuspended: false, revision: 1 };
  const matching = { sources: [SHOP, CRM], match: () => null, filterCharacters: 0 };
  const registered = { types: new Map(), requiresRegistration: false };
  return { ref: { tenantId: "ten_a" }, config: { ...config, ...matching, ...registered }, sourceId };
}

function item(fields: Record<string, unknown>, payload = new Uint8Array(3)): PublishItem {
  return { fields, payload, payloadIsJson: true, contentType: "application/json", contentEncoding: null };
}

function check(given: PublishItem, sourceId: string | null = SHOP.id) {
  const read = readItem(publisher(sourceId), given, MAX_PAYLOAD_BYTES);
  checkItem(publisher(sourceId), given, read, { stepsLeft: 1 });
  return read;
}

function refusal(given: PublishItem, sourceId?: string | null): AppError {
  try {
    check(given, sourceId);
  } catch (error) {
    if (error instanceof AppError) return error;
  }
  throw new Error("was not refused");
}

describe("fields", () => {
  const all = {
    type: "order.paid",
    source: "shop",
    occurred_at: "2026-01-31T13:00:00.5+01:00",
    schema_version: 2,
    idempotency_key: "key-1",
    ordering_key: "cart-7",
    cause_event_id: "evt_01k7xq3v5h8m2n4p6r8t0v2w4y",
  };

  test("come back as given, the time as milliseconds", () => {
    const occurredAt = Date.UTC(2026, 0, 31, 12, 0, 0, 500);
    expect(check(item(all))).toEqual({
      input: { ...all, occurred_at: occurredAt },
      source: SHOP,
      schemaVersion: 2,
      variants: [],
    });
  });

  test("but for the type may be absent or null", () => {
    expect(check(item({ type: "order.paid" })).source).toBe(SHOP);
    const nulls = Object.fromEntries(Object.keys(all).map((name) => [name, null]));
    expect(check(item({ ...nulls, type: "order.paid" })).source).toBe(SHOP);
  });

  test.each([
    ["type", undefined],
    ["type", null],
    ["type", ""],
    ["type", "order..paid"],
    ["type", "order paid"],
    ["type", "order.*"],
    ["type", "hooklane.endpoint.disabled"],
    ["type", "a".repeat(129)],
    ["source", ""],
    ["source", 1],
    ["occurred_at", "yesterday"],
    ["occurred_at", 1_790_000_000],
    ["occurred_at", "2026-02-30T00:00:00Z"],
    ["schema_version", 0],
    ["schema_version", 1.5],
    ["schema_version", "1"],
    ["schema_version", 2_147_483_648],
    ["idempotency_key", ""],
    ["idempotency_key", "with space"],
    ["idempotency_key", "line\r\nbreak"],
    ["idempotency_key", "ü"],
    ["idempotency_key", "k".repeat(257)],
    ["ordering_key", "with space"],
    ["ordering_key", 7],
    ["cause_event_id", "evt_1"],
    ["cause_event_id", "dlv_01k7xq3v5h8m2n4p6r8t0v2w4y"],
  ])("%s of %j is refused by name", (name, value) => {
    expect(refusal(item({ ...all, [name]: value }))).toMatchObject({
      code: "validation_failed",
      errors: [{ path: name }],
    });
  });

  test("that the contract does not know are refused by name, __proto__ too", () => {
    for (const name of ["typ", "payload_base64", "constructor", "__proto__"]) {
      const body = parsePublishBody(new TextEncoder().encode(`{"type":"order.paid","${name}":{},"payload":1}`));
      if (!body.ok) throw new Error(body.error.reason);
      expect(refusal(item(body.value.fields))).toMatchObject({ code: "validation_failed", errors: [{ path: name }] });
    }
  });

  test("a version that is not given is 1", () => {
    expect(check(item({ type: "order.paid" }))).toMatchObject({ schemaVersion: 1 });
    expect(check(item({ type: "order.paid", schema_version: null }))).toMatchObject({ schemaVersion: 1 });
  });
});

describe("variants", () => {
  const variant = (schema_version: unknown, bytes: number | null = 3, more: object = {}) => ({
    fields: { schema_version, ...more },
    payload: bytes === null ? null : new Uint8Array(bytes),
  });
  const withVariants = (...variants: ReturnType<typeof variant>[]): PublishItem => ({
    ...item({ type: "order.paid", schema_version: 3 }),
    variants,
  });

  test("come lowest version first, each with its place in the request", () => {
    const { variants } = check(withVariants(variant(10), variant(2), variant(4)));
    expect(variants.map(({ index, schemaVersion }) => [index, schemaVersion])).toEqual([
      [1, 2],
      [2, 4],
      [0, 10],
    ]);
  });

  test.each<[string, ReturnType<typeof variant>[]]>([
    ["variants.0.schema_version", [variant(3)]],
    ["variants.1.schema_version", [variant(4), variant(4)]],
    ["variants.1.schema_version", [variant(4), variant(undefined)]],
    ["variants.0.schema_version", [variant(0)]],
    ["variants.0.schema_version", [variant("4")]],
    ["variants.0.payload", [variant(4, null)]],
    ["variants.0.type", [variant(4, 3, { type: "order.paid" })]],
    ["variants", [4, 5, 6, 7, 8].map((version) => variant(version))],
  ])("that are wrong are refused by their place: %s", (path, variants) => {
    expect(refusal(withVariants(...variants))).toMatchObject({ code: "validation_failed", errors: [{ path }] });
  });

  test("may each have as many bytes as the limit says and not one more", () => {
    expect(check(withVariants(variant(4, MAX_PAYLOAD_BYTES), variant(5, 0))).variants).toHaveLength(2);
    expect(refusal(withVariants(variant(4, MAX_PAYLOAD_BYTES + 1))).code).toBe("payload_too_large");
  });
});

test("a payload may have as many bytes as the limit says and not one more", () => {
  const fields = { type: "order.paid" };
  expect(check(item(fields, new Uint8Array(MAX_PAYLOAD_BYTES))).source).toBe(SHOP);
  expect(check(item(fields, new Uint8Array(0))).source).toBe(SHOP);
  expect(refusal(item(fields, new Uint8Array(MAX_PAYLOAD_BYTES + 1))).code).toBe("payload_too_large");
});

describe("the source", () => {
  const type = "order.paid";

  test("is the key's own, named or not", () => {
    for (const source of [undefined, null, SHOP.id, SHOP.name]) {
      expect(check(item({ type, source })).source).toBe(SHOP);
    }
  });

  test("of another key is forbidden", () => {
    for (const source of [CRM.id, CRM.name]) expect(refusal(item({ type, source })).code).toBe("forbidden");
  });

  test("is named by an admin, by id or by name", () => {
    for (const source of [CRM.id, CRM.name]) expect(check(item({ type, source }), null).source).toBe(CRM);
    for (const source of [undefined, null]) {
      const missing = { code: "validation_failed", errors: [{ path: "source" }] };
      expect(refusal(item({ type, source }), null)).toMatchObject(missing);
    }
  });

  test("that is nobody's is refused the same for every key, and so is that of a key whose source is gone", () => {
    const unknown = {
      code: "validation_failed",
      errors: [{ path: "source", message: "is not a source of this tenant" }],
    };
    for (const sourceId of [null, SHOP.id]) {
      for (const source of ["src_0000000000000009", "nobody"]) {
        expect(refusal(item({ type, source }), sourceId)).toMatchObject(unknown);
      }
    }
    expect(refusal(item({ type }), "src_0000000000000009")).toMatchObject(unknown);
  });

  test("may not publish what its list does not allow, whoever asks", () => {
    expect(refusal(item({ type: "order.secret" })).code).toBe("event_type_not_allowed");
    expect(refusal(item({ type: "order.secret", source: "shop" }), null).code).toBe("event_type_not_allowed");
    expect(check(item({ type: "order.secret", source: "crm" }), null).source).toBe(CRM);
  });
});
