import { CreateEndpointInput } from "../../../app/endpoint/create-endpoint.ts";
import { ListSecretsInput } from "../../../app/endpoint/list-secrets.ts";
import { ListEndpointsInput } from "../../../app/endpoint/read-endpoint.ts";
import { RetryPendingInput } from "../../../app/endpoint/retry-pending.ts";
import { RotateSecretInput } from "../../../app/endpoint/rotate-secret.ts";
import { UpdateEndpointInput } from "../../../app/endpoint/update-endpoint.ts";
import { SkipHeadInput } from "../../../app/lane/skip-head.ts";
import { AttemptAnswer } from "../../present/delivery.ts";
import { CreatedEndpointAnswer, EndpointAnswer, RetriedPendingAnswer } from "../../present/endpoint.ts";
import { HealthAnswer } from "../../present/health.ts";
import { LaneAnswer } from "../../present/lane.ts";
import { pageOf } from "../../present/page.ts";
import { ListedSecretAnswer, RotatedSecretAnswer } from "../../present/secret.ts";
import { answer, jsonBody, type Operation } from "../operation.ts";
import { act, create, list, OWN, read, remove, update, type Noun } from "./shared.ts";

const ENDPOINT: Noun = {
  path: "endpoints",
  name: "Endpoint",
  one: "an endpoint",
  many: "Endpoints",
  access: OWN,
  row: EndpointAnswer,
  query: ListEndpointsInput,
};

const THE_ENDPOINT = { 200: answer("The endpoint as it is now.", EndpointAnswer) };
const THE_LANE = { 200: answer("The lane as it is now.", LaneAnswer) };

export const endpointOperations: Operation[] = [
  create(ENDPOINT, {
    schema: CreateEndpointInput,
    example: { url: "https://consumer.example/hook", timeout_ms: 10_000 },
    row: CreatedEndpointAnswer,
    description: "The text of its signing secret is answered this once.",
    problems: ["quota_exceeded"],
  }),
  list(ENDPOINT),
  read(ENDPOINT),
  update(ENDPOINT, {
    schema: UpdateEndpointInput,
    example: { name: "orders" },
    description: "Holds from the next attempt on; deliveries that exist keep the retry policy they were made with.",
    problems: ["unavailable"],
  }),
  remove(ENDPOINT, "What it is still owed ends `failed`; its subscriptions go with it, and history stays readable."),
  act(ENDPOINT, "pause", {
    id: "pauseEndpoint",
    summary: "Hold all deliveries to an endpoint; nothing is lost",
    answers: THE_ENDPOINT,
  }),
  act(ENDPOINT, "resume", { id: "resumeEndpoint", summary: "Let a paused endpoint go on", answers: THE_ENDPOINT }),
  act(ENDPOINT, "disable", {
    id: "disableEndpoint",
    summary: "Stop attempts to an endpoint",
    description:
      "What is pending is held with its clock running; an event accepted meanwhile gets a delivery born `failed`.",
    answers: THE_ENDPOINT,
  }),
  act(ENDPOINT, "enable", { id: "enableEndpoint", summary: "Let a disabled endpoint go on", answers: THE_ENDPOINT }),
  act(ENDPOINT, "retry-pending", {
    id: "retryPending",
    summary: "Make all due now that waits for a retry at an endpoint",
    description: "Order, cap and rate still apply. A part at a time: go on with `next_cursor` while there is one.",
    body: jsonBody("RetryPending", RetryPendingInput, {}),
    answers: { 200: answer("How many are due.", RetriedPendingAnswer) },
    problems: ["held"],
  }),
  act(ENDPOINT, "test", {
    id: "testEndpoint",
    summary: "Send one test event to an endpoint at once",
    description: "Past its lane, cap, rate, pause and disabling; it is on record like any other, and not tried again.",
    answers: { 200: answer("The attempt.", AttemptAnswer) },
    problems: ["destination_blocked", "tenant_suspended"],
  }),
  act(ENDPOINT, "health", {
    id: "getEndpointHealth",
    method: "get",
    access: "read",
    body: undefined,
    summary: "Look at how an endpoint does, by its recent attempts",
    description: "Computed when it is asked for, from at most 100 answered attempts. Nothing is decided by it.",
    answers: { 200: answer("The health as it is now.", HealthAnswer) },
  }),
  act(ENDPOINT, "lane", {
    id: "getLane",
    method: "get",
    access: "read",
    body: undefined,
    summary: "Look at what stands at the head of an endpoint's lane, and what is behind it",
    answers: THE_LANE,
  }),
  act(ENDPOINT, "lane/skip", {
    id: "skipHead",
    summary: "Let a lane go on past its blocked head",
    body: jsonBody("SkipHead", SkipHeadInput, { delivery_id: `dlv_${"0".repeat(42)}` }),
    answers: THE_LANE,
    problems: ["not_blocked"],
  }),
  act(ENDPOINT, "lane/move", {
    id: "moveLane",
    summary: "Give a lane a new object, where one is stuck",
    answers: THE_LANE,
  }),
  act(ENDPOINT, "secrets", {
    id: "listSecrets",
    method: "get",
    access: "read",
    body: undefined,
    summary: "List the live signing secrets of an endpoint, at most two",
    description: "Their text only with `reveal=true` and an admin key.",
    query: ListSecretsInput,
    answers: { 200: answer("The live secrets, newest first.", pageOf("SigningSecret", ListedSecretAnswer)) },
  }),
  act(ENDPOINT, "secrets/rotate", {
    id: "rotateSecret",
    summary: "Give an endpoint a new signing secret",
    description:
      "Both secrets sign every request until the overlap ends. The text of the new one is answered this once.",
    body: jsonBody("RotateSecret", RotateSecretInput, { overlap_hours: 24 }),
    answers: { 201: answer("The new secret.", RotatedSecretAnswer) },
    problems: ["rotation_in_progress"],
  }),
];
