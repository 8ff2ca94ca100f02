import { z } from "zod";
import { answer, type Operation } from "../operation.ts";
import { ANSWERS } from "../registries.ts";

const Health = z.object({ status: z.literal("ok") }).register(ANSWERS, { id: "Health" });

/** What needs no token. */
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
