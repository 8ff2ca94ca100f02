import { expect, test } from "vitest";
import { DisplayName } from "../../../src/app/field-schemas.ts";
import { decodeBase64, decodeBase64Url } from "../../../src/core/base64.ts";
import { parseCursor } from "../../../src/core/cursor.ts";
import { compilePattern, isEventType, parseEventTypePattern } from "../../../src/core/event-type.ts";
import { EVENT_KEY, parseIdempotencyKeyHeader, SOURCE_NAME } from "../../../src/core/grammar.ts";
import { isEventId, isId, parseDeliveryId } from "../../../src/core/ids.ts";
import { isJson } from "../../../src/core/json-span.ts";
import { parseBatchBody, parseNdjsonBody, parsePublishBody } from "../../../src/core/publish-body.ts";
import { boundResponseHeaders, keepResponseHeaders, partnerRequestId } from "../../../src/core/response-headers.ts";
import { parseRetryAfter } from "../../../src/core/retry-after.ts";
import { decodeSigningSecret } from "../../../src/core/signature.ts";
import { parseTime } from "../../../src/core/timestamps.ts";
import { checkDestination } from "../../../src/core/url-guard.ts";

const MEGABYTE = 1024 * 1024;
const rules = { allowPrivate: false, ownHosts: [] };

/** A megabyte of one thing, by itself and between two others: where a search that goes back would go back for ever. */
const runs = [" ", "\n", "a", "0", ".", "*", "a.", "=", '"', "\\", "[", '{"a":', "1,", "é"];
const megabytes = runs.map((run) => run.repeat(MEGABYTE / run.length));
const inputs = megabytes.flatMap((megabyte) => [megabyte, `a${megabyte}b`, `"${megabyte}"`]);

const texts: Record<string, (text: string) => unknown> = {
  isEventType,
  parseEventTypePattern,
  "a pattern": compilePattern("a.*.b.*"),
  parseCursor: (text) => parseCursor(text, ["number", "string"]),
  decodeBase64,
  decodeBase64Url,
  decodeSigningSecret: (text) => decodeSigningSecret(`whsec_${text}`),
  parseRetryAfter: (text) => parseRetryAfter(text, 0),
  "parseRetryAfter, a date": (text) => parseRetryAfter(`Tue, ${text}`, 0),
  parseTime: (text) => parseTime(`2026-01-01T00:00:00.${text}`),
  isId: (text) => isId("ep", `ep_${text}`),
  isEventId: (text) => isEventId(`evt_${text}`),
  parseDeliveryId: (text) => parseDeliveryId(`dlv_${text}`),
  parseIdempotencyKeyHeader,
  "the grammar of names and keys": (text) => SOURCE_NAME.test(text) || EVENT_KEY.test(text),
  DisplayName: (text) => DisplayName.safeParse(text),
  checkDestination: (text) => checkDestination(`https://${text}`, rules),
  partnerRequestId,
  "keeping a header": (text) =>
    keepResponseHeaders(
      boundResponseHeaders([
        ["x-a", text],
        ["server", text],
        [text, "v"],
      ]),
      false,
    ),
};

test.each(Object.keys(texts))("%s takes a megabyte of anything in a moment", (name) => {
  for (const input of inputs) texts[name]!(input);
});

const bodies: Record<string, (bytes: Uint8Array) => unknown> = {
  isJson,
  parsePublishBody,
  parseBatchBody: (bytes) => parseBatchBody(bytes, 500),
  parseNdjsonBody: (bytes) => parseNdjsonBody(bytes, 500),
};

test.each(Object.keys(bodies))("%s takes a megabyte of anything in a moment", (name) => {
  for (const input of megabytes.flatMap((megabyte) => [megabyte, `"${megabyte}"`]))
    bodies[name]!(new TextEncoder().encode(input));
});

test("eight megabytes of empty lines hold no event, and are read once", () => {
  expect(parseNdjsonBody(new Uint8Array(8 * MEGABYTE).fill(0x0a), 500)).toEqual({
    ok: false,
    error: { reason: "no_events" },
  });
});

test("a megabyte of members, elements and events is read once", () => {
  const encode = (text: string) => new TextEncoder().encode(text);
  const members = Array.from({ length: 100_000 }, (_, n) => `"f${n}":1`).join();
  expect(parsePublishBody(encode(`{${members}}`))).toMatchObject({ error: { reason: "fields_too_large" } });
  expect(parsePublishBody(encode(`{"payload":{${members}}}`)).ok).toBe(true);
  const many = Array.from({ length: 300_000 }, () => "{}").join();
  expect(parseBatchBody(encode(`{"events":[${many}]}`), 500)).toMatchObject({ error: { reason: "too_many_events" } });
  expect(parseNdjsonBody(encode(many.replaceAll(",", "\n")), 500)).toMatchObject({
    error: { reason: "too_many_events" },
  });
});
