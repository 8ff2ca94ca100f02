import { z } from "zod";
import { CreateSubscriptionInput } from "../../../app/subscription/create-subscription.ts";
import { ListSubscriptionsInput } from "../../../app/subscription/read-subscription.ts";
import { TestSubscriptionInput } from "../../../app/subscription/test-subscription.ts";
import { UpdateSubscriptionInput } from "../../../app/subscription/update-subscription.ts";
import { SubscriptionAnswer, SubscriptionTestAnswer } from "../../present/subscription.ts";
import { answer, jsonBody, type Operation } from "../operation.ts";
import { act, create, list, OWN, read, remove, update, type Noun } from "./shared.ts";

const SUBSCRIPTION: Noun = {
  path: "subscriptions",
  name: "Subscription",
  one: "a subscription",
  many: "Subscriptions",
  access: OWN,
  row: SubscriptionAnswer,
  query: ListSubscriptionsInput,
};

// As in a publish: the payload's bytes are taken out of the body by their place.
const TestSubscription = TestSubscriptionInput.extend({ payload: z.unknown().optional() });

const THE_SUBSCRIPTION = { 200: answer("The subscription as it is now.", SubscriptionAnswer) };

export const subscriptionOperations: Operation[] = [
  create(SUBSCRIPTION, {
    schema: CreateSubscriptionInput,
    example: { endpoint_id: "ep_0000000000000000", event_type_pattern: "order.*", filter: "payload.total > 10" },
    problems: ["quota_exceeded"],
  }),
  {
    id: "testSubscription",
    method: "post",
    path: "/v1/subscriptions/test",
    tag: "Subscriptions",
    summary: "Try a filter, or a subscription, on an event",
    description: "Stores nothing. On a stored event (`event_id`), or on a sample (`payload`, `event`, or both).",
    access: "read",
    body: jsonBody("TestSubscription", TestSubscription, {
      filter: "payload.total > 10",
      event: { type: "order.created" },
      payload: { total: 12 },
    }),
    answers: { 200: answer("What would become of the event.", SubscriptionTestAnswer) },
    problems: ["payload_too_large", "payload_erased"],
  },
  list(SUBSCRIPTION),
  read(SUBSCRIPTION),
  update(SUBSCRIPTION, {
    schema: UpdateSubscriptionInput,
    example: { event_type_pattern: "order.paid" },
    description: "A `retry_policy` goes over the override there is; null takes the override away.",
    problems: ["quota_exceeded"],
  }),
  remove(SUBSCRIPTION, "It matches nothing more; deliveries it has made go on."),
  act(SUBSCRIPTION, "disable", {
    id: "disableSubscription",
    summary: "Let a subscription match nothing more",
    description: "Deliveries it has made go on.",
    answers: THE_SUBSCRIPTION,
  }),
  act(SUBSCRIPTION, "enable", {
    id: "enableSubscription",
    summary: "Let a disabled subscription match again",
    answers: THE_SUBSCRIPTION,
  }),
];
