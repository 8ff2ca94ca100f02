import { CreateApiKeyInput } from "../../../app/api-key/create-api-key.ts";
import { UpdateApiKeyInput } from "../../../app/api-key/update-api-key.ts";
import { ApiKeyAnswer, CreatedApiKeyAnswer } from "../../present/api-key.ts";
import type { Operation } from "../operation.ts";
import { create, list, OWN, read, remove, update, type Noun } from "./shared.ts";

const API_KEY: Noun = {
  path: "api-keys",
  name: "ApiKey",
  one: "an API key",
  many: "API keys",
  access: OWN,
  row: ApiKeyAnswer,
};

export const apiKeyOperations: Operation[] = [
  create(API_KEY, {
    schema: CreateApiKeyInput,
    example: { scope: "publish", source_id: "src_0000000000000000", name: "checkout" },
    row: CreatedApiKeyAnswer,
    description: "The text of the key is answered this once. The operator may name the tenant in `tenant_id`.",
    problems: ["quota_exceeded"],
  }),
  list(API_KEY),
  read(API_KEY),
  update(API_KEY, {
    schema: UpdateApiKeyInput,
    example: { name: "checkout, new" },
    description: "What a key may do is fixed when it is made.",
  }),
  remove(API_KEY, "Revokes it, at once."),
];
