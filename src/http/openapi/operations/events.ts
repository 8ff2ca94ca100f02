import { z } from "zod";
import { GetEventPayloadInput, ListEventsInput } from "../../../app/event/read-event.ts";
import { SchemaVersion } from "../../../app/field-schemas.ts";
import { PublishEventInput } from "../../../app/publish/publish-input.ts";
import { EventAnswer } from "../../present/event.ts";
import { AcceptedAnswer, BatchAnswer } from "../../present/publish.ts";
import { MAX_VARIANTS } from "../../../core/event-variants.ts";
import { answer, json, jsonBody, type Operation } from "../operation.ts";
import { REQUESTS } from "../registries.ts";
import { list, OWN, read, type Noun } from "./shared.ts";

const EVENT: Noun = {
  path: "events",
  name: "Event",
  one: "an event",
  many: "Events",
  access: OWN,
  row: EventAnswer,
  query: ListEventsInput,
  isTwoWay: true,
};

const PublishVariant = z
  .strictObject({ schema_version: SchemaVersion, payload: z.unknown() })
  .register(REQUESTS, { id: "PublishVariant" });

// The payload is never parsed: core/publish-body takes its bytes out of the body by their place.
const PublishEvent = PublishEventInput.extend({
  payload: z.unknown(),
  variants: z.array(PublishVariant).max(MAX_VARIANTS).nullish(),
}).register(REQUESTS, { id: "PublishEvent" });
const PublishBatch = z.strictObject({ events: z.array(PublishEvent).min(1).max(500) });
const EXAMPLE = { type: "order.created", source: "orders", payload: { id: 1 } };

const ACCEPTED: Operation["answers"] = {
  202: answer("Accepted, and durable: a crash right after loses nothing.", AcceptedAnswer),
  200: answer("The source has used this idempotency key: the first answer again.", AcceptedAnswer),
};
const PUBLISH_PROBLEMS: Operation["problems"] = [
  "event_type_not_allowed",
  "event_type_not_registered",
  "tenant_suspended",
  "rate_limited",
  "payload_too_large",
  "idempotency_key_reused",
  "fan_out_too_large",
];

export const eventOperations: Operation[] = [
  {
    id: "publishEvent",
    method: "post",
    path: "/v1/events",
    tag: "Events",
    summary: "Publish an event",
    description: "The payload arrives at consumers byte for byte as it is given here.",
    access: "publish",
    takesIdempotencyKey: true,
    body: jsonBody("PublishEvent", PublishEvent, EXAMPLE),
    answers: ACCEPTED,
    problems: [...PUBLISH_PROBLEMS, "unsupported_media_type"],
  },
  {
    id: "publishRaw",
    method: "post",
    path: "/v1/events/raw",
    tag: "Events",
    summary: "Publish an event whose payload is the body",
    description: "Any body and content type, byte for byte; `Content-Type` and `Content-Encoding` are kept with it.",
    access: "publish",
    takesIdempotencyKey: true,
    query: PublishEventInput,
    queryExample: { type: "order.created", source: "orders" },
    body: [{ type: "*/*", example: '{"id":1}' }],
    answers: ACCEPTED,
    problems: PUBLISH_PROBLEMS,
  },
  {
    id: "publishBatch",
    method: "post",
    path: "/v1/events/batch",
    tag: "Events",
    summary: "Publish up to 500 events",
    description: "At most 8 MiB, as JSON or one event a line. A bad event sinks nobody else.",
    access: "publish",
    body: [
      ...jsonBody("PublishBatch", PublishBatch, { events: [EXAMPLE] }),
      { type: "application/x-ndjson", example: JSON.stringify(EXAMPLE) },
    ],
    answers: { 202: { description: "One result an event, in order.", content: json(BatchAnswer) } },
    problems: ["tenant_suspended", "rate_limited", "request_too_large", "unsupported_media_type"],
  },
  list(EVENT),
  read(EVENT),
  {
    id: "getEventPayload",
    method: "get",
    path: "/v1/events/{id}/payload",
    tag: "Events",
    summary: "Read the payload of an event",
    access: "read",
    query: GetEventPayloadInput,
    answers: {
      200: {
        description: "The stored bytes with the content type they came with, as an attachment that no browser runs.",
        content: [{ type: "*/*" }],
        headers: { "X-Payload-Content-Encoding": "The content encoding they came with, if any." },
      },
    },
  },
  {
    id: "eraseEventPayload",
    method: "delete",
    path: "/v1/events/{id}/payload",
    tag: "Events",
    summary: "Erase the payload of an event, for good",
    description:
      "Its stored bytes are overwritten. Pending deliveries end `failed`; the event and its deliveries stay.",
    access: "admin",
    answers: { 204: answer("Erased.") },
  },
];
