import { z } from "zod";
import { WebhookKeysAnswer } from "../../present/webhook-keys.ts";
import { answer, type Operation } from "../operation.ts";
import { ANSWERS } from "../registries.ts";

/** What an answer that anybody may keep says of how long. */
const CACHED = "For how long it may be kept, by anybody: five minutes.";

const Health = z.object({ status: z.literal("ok") }).register(ANSWERS, { id: "Health" });

/** What needs no token of a tenant's or the operator's. */
export const serviceOperations: Operation[] = [
  {
    id: "getHealth",
    method: "get",
    path: "/health",
    tag: "Service",
    summary: "Ask whether the relay is up",
    access: "anyone",
    answers: { 200: answer("It is up.", Health) },
  },
  {
    id: "getWebhookKeys",
    method: "get",
    path: "/.well-known/webhook-keys/{id}",
    tag: "Service",
    summary: "Read the public keys by which what a source sends is verified",
    description: "Newest first: one, or two while a rotation overlaps. By the source's id.",
    access: "anyone",
    answers: { 200: { ...answer("Its keys.", WebhookKeysAnswer), headers: { "Cache-Control": CACHED } } },
    problems: ["not_found", "validation_failed", "duplicate_field", "internal_error", "unavailable"],
  },
  {
    id: "getMetrics",
    method: "get",
    path: "/metrics",
    tag: "Service",
    summary: "Read how the relay does, for Prometheus",
    description: "Counted over all isolates and shards. There is no such route where `METRICS_TOKEN` is not set.",
    access: "metrics",
    answers: {
      200: { description: "Prometheus' text format, version 0.0.4.", content: [{ type: "text/plain" }] },
    },
  },
  {
    id: "getOpenApi",
    method: "get",
    path: "/openapi.json",
    tag: "Service",
    summary: "Read this document",
    access: "anyone",
    answers: { 200: answer("OpenAPI 3.1.", z.record(z.string(), z.unknown())) },
  },
  {
    id: "getDocs",
    method: "get",
    path: "/docs",
    tag: "Service",
    summary: "Read this document as a page",
    access: "anyone",
    answers: { 200: { description: "HTML.", content: [{ type: "text/html" }] } },
  },
];
