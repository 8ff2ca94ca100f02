import { CreateSourceInput } from "../../../app/source/create-source.ts";
import { UpdateSourceInput } from "../../../app/source/update-source.ts";
import { RotateSourceKeyInput } from "../../../app/source/rotate-source-key.ts";
import { SourceAnswer, SourceWithKeyAnswer } from "../../present/source.ts";
import { answer, jsonBody, type Operation } from "../operation.ts";
import { act, create, list, OWN, read, remove, update, type Noun } from "./shared.ts";

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
    row: SourceWithKeyAnswer,
    description: "The text of its signing key is answered this once.",
    problems: ["name_taken", "quota_exceeded"],
  }),
  list(SOURCE),
  read(SOURCE),
  update(SOURCE, {
    schema: UpdateSourceInput,
    example: { allowed_event_types: ["invoice.*", "refund.*"] },
    problems: ["name_taken"],
  }),
  act(SOURCE, "rotate-key", {
    id: "rotateSourceKey",
    summary: "Give a source a new signing key, or a new delivery key",
    description:
      "Both keys are good until the overlap ends. The text of a new signing key is answered this once; that of a delivery " +
      "key by nobody, and its public half at `/.well-known/webhook-keys/{id}`.",
    body: jsonBody("RotateSourceKey", RotateSourceKeyInput, { overlap_hours: 24 }),
    answers: {
      200: answer("The source; of a new delivery key there is nothing to show.", SourceAnswer),
      201: answer("The source with its new signing key.", SourceWithKeyAnswer),
    },
    problems: ["rotation_in_progress"],
  }),
  remove(SOURCE, "Its publish keys are revoked; its events go on."),
];
