import type { z } from "zod";
import { listInput } from "../../../app/list-input.ts";
import { NothingInput } from "../../request.ts";
import { pageOf, twoWayPageOf } from "../../present/page.ts";
import { RetryPolicyInput } from "../../../core/retry-policy.ts";
import { REQUESTS } from "../registries.ts";
import { answer, jsonBody, type Operation } from "../operation.ts";

interface Noun {
  /** As in a path, and as ids of operations name it: `api-keys`, `ApiKey`. */
  path: string;
  /** What stands for one of them in a path, where that is not its id. */
  key?: "id" | "name";
  name: string;
  /** As in a sentence: `an API key`. */
  one: string;
  many: string;
  access: { read: Operation["access"]; write: Operation["access"] };
  row: z.ZodType;
  query?: z.ZodRawShape;
  /** Whether its list is read both ways. */
  isTwoWay?: boolean;
}

function pathOf({ path, key = "id" }: Noun): string {
  return `/v1/${path}/{${key}}`;
}

/** A list, newest first. */
export function list(noun: Noun, problems: Operation["problems"] = []): Operation {
  return {
    id: `list${noun.name}s`,
    method: "get",
    path: `/v1/${noun.path}`,
    tag: noun.many,
    summary: `List ${noun.many.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())}, newest first`,
    access: noun.access.read,
    query: listInput(noun.query ?? {}),
    answers: {
      200: answer(
        "A page, which may be shorter than `limit`: only `next_cursor` null says that it is the last.",
        (noun.isTwoWay ? twoWayPageOf : pageOf)(noun.name, noun.row),
      ),
    },
    problems,
  };
}

export function read(noun: Noun): Operation {
  return {
    id: `get${noun.name}`,
    method: "get",
    path: pathOf(noun),
    tag: noun.many,
    summary: `Read ${noun.one}`,
    access: noun.access.read,
    answers: { 200: answer(`${noun.one[0]!.toUpperCase()}${noun.one.slice(1)}.`, noun.row) },
  };
}

interface Write {
  schema: z.ZodType;
  example: unknown;
  /** What is answered, where that is more than the noun. */
  row?: z.ZodType;
  description?: string;
  problems?: Operation["problems"];
}

export function create(noun: Noun, { schema, example, row, description, problems }: Write): Operation {
  return {
    id: `create${noun.name}`,
    method: "post",
    path: `/v1/${noun.path}`,
    tag: noun.many,
    summary: `Create ${noun.one}`,
    ...(description !== undefined && { description }),
    access: noun.access.write,
    body: jsonBody(`Create${noun.name}`, schema, example),
    answers: { 201: answer("Created.", row ?? noun.row) },
    problems: problems ?? [],
  };
}

export function update(noun: Noun, { schema, example, description, problems }: Write): Operation {
  return {
    id: `update${noun.name}`,
    method: "patch",
    path: pathOf(noun),
    tag: noun.many,
    summary: `Change ${noun.one}`,
    description: ["What is left out stays as it is; null clears.", description].filter(Boolean).join(" "),
    access: noun.access.write,
    body: jsonBody(`Update${noun.name}`, schema, example),
    answers: { 200: answer("Changed.", noun.row) },
    problems: problems ?? [],
  };
}

export function remove(noun: Noun, description: string): Operation {
  return {
    id: `delete${noun.name}`,
    method: "delete",
    path: pathOf(noun),
    tag: noun.many,
    summary: `Delete ${noun.one}`,
    description,
    access: noun.access.write,
    answers: { 204: answer("Deleted.") },
  };
}

/** `POST /v1/…/{id}/<verb>`, which takes no body or `{}` unless `body` says more. */
export function act(
  noun: Noun,
  verb: string,
  operation: Pick<Operation, "id" | "summary" | "answers"> & Partial<Operation>,
): Operation {
  return {
    method: "post",
    path: `${pathOf(noun)}/${verb}`,
    tag: noun.many,
    access: noun.access.write,
    body: jsonBody("Nothing", NothingInput, {}),
    ...operation,
  };
}

REQUESTS.add(RetryPolicyInput, { id: "RetryPolicyInput" });

/** What a tenant's keys read and its admin keys change. */
export const OWN = { read: "read", write: "admin" } as const;

export type { Noun };
