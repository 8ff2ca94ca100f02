import { CreateSourceInput } from "../../../app/source/create-source.ts";
import { UpdateSourceInput } from "../../../app/source/update-source.ts";
import { SourceAnswer } from "../../present/source.ts";
import type { Operation } from "../operation.ts";
import { create, list, OWN, read, remove, update, type Noun } from "./shared.ts";

const SOURCE: Noun = {
  path: "sources",
  name: "Source",
  one: "a source",
  many: "Sources",
  access: OWN,
  row: SourceAnswer,
};

export const sourceOperations: Operation[] = [
  create(SOURCE, {
    schema: CreateSourceInput,
    example: { name: "invoices", allowed_event_types: ["invoice.*"] },
    problems: ["name_taken", "not_supported"],
  }),
  list(SOURCE),
  read(SOURCE),
  update(SOURCE, {
    schema: UpdateSourceInput,
    example: { allowed_event_types: ["invoice.*", "refund.*"] },
    problems: ["name_taken", "not_supported"],
  }),
  remove(SOURCE, "Its publish keys are revoked; its events go on."),
];
