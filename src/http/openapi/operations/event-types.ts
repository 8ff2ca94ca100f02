import { CreateEventTypeInput } from "../../../app/event-type/create-event-type.ts";
import { UpdateEventTypeInput } from "../../../app/event-type/update-event-type.ts";
import { EventTypeAnswer } from "../../present/event-type.ts";
import type { Operation } from "../operation.ts";
import { create, list, OWN, read, remove, update, type Noun } from "./shared.ts";

const EVENT_TYPE: Noun = {
  path: "event-types",
  key: "name",
  name: "EventType",
  one: "an event type",
  many: "Event types",
  access: OWN,
  row: EventTypeAnswer,
};

export const eventTypeOperations: Operation[] = [
  create(EVENT_TYPE, {
    schema: CreateEventTypeInput,
    example: { name: "order.created", schema_version: 1, json_schema: { type: "object", required: ["id"] } },
    description: "Registers a type, or another version of one that is registered.",
    problems: ["version_taken", "quota_exceeded"],
  }),
  list(EVENT_TYPE),
  read(EVENT_TYPE),
  update(EVENT_TYPE, {
    schema: UpdateEventTypeInput,
    example: { required_scope: "orders" },
    description:
      "`json_schema` and `retired` are of the version that `schema_version` names. Retiring one that subscriptions ask " +
      "for is 409 with a list of them, unless `force` is true.",
    problems: ["version_in_use", "quota_exceeded"],
  }),
  remove(EVENT_TYPE, "It is as if it had never been registered: without schemas, scope or retired versions."),
];
