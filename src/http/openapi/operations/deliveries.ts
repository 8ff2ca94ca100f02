import { ListDeliveriesInput } from "../../../app/delivery/list-deliveries.ts";
import { ReplayDeliveryInput } from "../../../app/delivery/replay-delivery.ts";
import { AttemptAnswer, DeliveryAnswer, DeliveryWithAttemptsAnswer } from "../../present/delivery.ts";
import { pageOf } from "../../present/page.ts";
import { answer, jsonBody, type Operation } from "../operation.ts";
import { act, list, OWN, read, type Noun } from "./shared.ts";

const DELIVERY: Noun = {
  path: "deliveries",
  name: "Delivery",
  one: "a delivery",
  many: "Deliveries",
  access: OWN,
  row: DeliveryAnswer,
  query: ListDeliveriesInput,
  isTwoWay: true,
};

export const deliveryOperations: Operation[] = [
  { ...list(DELIVERY), id: "listDeliveries" },
  {
    ...read(DELIVERY),
    summary: "Read a delivery with its attempts",
    answers: { 200: answer("A delivery with its attempts.", DeliveryWithAttemptsAnswer) },
  },
  act(DELIVERY, "attempts", {
    id: "listAttempts",
    method: "get",
    access: "read",
    body: undefined,
    summary: "List the attempts of a delivery, oldest first",
    answers: { 200: answer("All of them.", pageOf("Attempt", AttemptAnswer)) },
  }),
  act(DELIVERY, "retry", {
    id: "retryDelivery",
    summary: "Make a pending delivery due now",
    description: "Order, cap and rate of the endpoint still apply.",
    answers: { 202: answer("It is due.", DeliveryAnswer) },
    problems: ["not_pending", "held"],
  }),
  act(DELIVERY, "replay", {
    id: "replayDelivery",
    summary: "Deliver again what has ended, as a new delivery",
    description:
      "With the same `idempotency_key`, which consumers see as `webhook-id`. A `retry_policy` goes over the endpoint's.",
    body: jsonBody("ReplayDelivery", ReplayDeliveryInput, {}),
    answers: { 202: answer("The new delivery.", DeliveryAnswer) },
    problems: [
      "not_terminal",
      "endpoint_disabled",
      "endpoint_deleted",
      "payload_erased",
      "version_not_published",
      "version_retired",
    ],
  }),
  act(DELIVERY, "cancel", {
    id: "cancelDelivery",
    summary: "End a pending delivery",
    answers: { 200: answer("It has ended.", DeliveryAnswer) },
    problems: ["in_flight", "not_pending"],
  }),
];
