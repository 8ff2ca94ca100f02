import { CreateSubscriptionInput } from "../../../app/subscription/create-subscription.ts";
import { ListSubscriptionsInput } from "../../../app/subscription/read-subscription.ts";
import { UpdateSubscriptionInput } from "../../../app/subscription/update-subscription.ts";
import { SubscriptionAnswer } from "../../present/subscription.ts";
import { answer, type Operation } from "../operation.ts";
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

const THE_SUBSCRIPTION = { 200: answer("The subscription as it is now.", SubscriptionAnswer) };

export const subscriptionOperations: Operation[] = [
  create(SUBSCRIPTION, {
    schema: CreateSubscriptionInput,
    example: { endpoint_id: "ep_0000000000000000", event_type_pattern: "order.*" },
    problems: ["not_supported", "quota_exceeded"],
  }),
  list(SUBSCRIPTION),
  read(SUBSCRIPTION),
  update(SUBSCRIPTION, {
    schema: UpdateSubscriptionInput,
    example: { event_type_pattern: "order.paid" },
    description: "A `retry_policy` goes over the override there is; null takes the override away.",
    problems: ["not_supported"],
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
