import { z } from "zod";
import type { Source } from "../../core/model.ts";
import { notFound } from "../app-error.ts";
import { parseInput } from "../parse-input.ts";
import { requireAdmin, type Principal } from "../principal.ts";
import { CreateSourceInput, nameTaken } from "./create-source.ts";
import type { SourceDeps } from "./deps.ts";

export const UpdateSourceInput = z.strictObject({
  name: CreateSourceInput.shape.name.optional(),
  allowed_event_types: CreateSourceInput.shape.allowed_event_types.unwrap().optional(),
});
export type UpdateSourceInput = z.infer<typeof UpdateSourceInput>;

export async function updateSource(deps: SourceDeps, principal: Principal, id: string, body: unknown): Promise<Source> {
  requireAdmin(principal);
  const input = parseInput(UpdateSourceInput, body);
  const updated = await deps.sources.update(principal.tenantId, id, {
    name: input.name,
    allowedEventTypes: input.allowed_event_types,
  });
  if (!updated.ok) throw nameTaken();
  if (!updated.value) throw notFound("source");
  return updated.value;
}
