import { FindInput } from "../../../app/find/find.ts";
import { FindingsAnswer } from "../../present/find.ts";
import { answer, type Operation } from "../operation.ts";

export const findOperations: Operation[] = [
  {
    id: "find",
    method: "get",
    path: "/v1/find",
    tag: "Find",
    summary: "Find what an id or a key belongs to",
    description:
      "An event's, a delivery's or an attempt's id, a `webhook-id`, an idempotency key, a receiver's `X-Request-Id`, or an " +
      "ordering key: without `kind`, whatever the text may be. Nothing found means that there is nothing only where it says `complete`.",
    access: "read",
    query: FindInput,
    queryExample: { q: "order-1001" },
    answers: { 200: answer("What was found, and where was looked.", FindingsAnswer) },
  },
];
