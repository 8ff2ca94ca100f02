import { z } from "zod";
import { OPERATIONAL_EVENT_TYPES } from "../../core/event-type.ts";
import { EVENT_KEY } from "../../core/grammar.ts";
import { isEventId } from "../../core/ids.ts";
import { AppError, invalidField } from "../app-error.ts";
import { EventTypeName, Time } from "../field-schemas.ts";
import { notSupported, parseInput } from "../parse-input.ts";
import { checkRegistered } from "./check-registered.ts";
import type { Publisher, PublishSource } from "./publish-config.ts";

const EventKey = z.string().regex(EVENT_KEY, "must be 1 to 256 visible ASCII characters");

/** Everything of a publish but its payload (contract §2). */
export const PublishEventInput = z.strictObject({
  type: EventTypeName,
  source: z.string().min(1).max(64).nullish(),
  occurred_at: Time.nullish(),
  schema_version: z.int().min(1).max(2_147_483_647).nullish(),
  idempotency_key: EventKey.nullish(),
  ordering_key: EventKey.nullish(),
  cause_event_id: z.string().refine(isEventId, "must be an event id").nullish(),
  variants: notSupported(),
});
export type PublishEventInput = z.infer<typeof PublishEventInput>;

/** The same for what the relay itself tells of. */
const OperationalEventInput = PublishEventInput.extend({ type: z.enum(OPERATIONAL_EVENT_TYPES) });

/** One event of a publish request: its fields as they came, its payload as bytes. */
export interface PublishItem {
  fields: Record<string, unknown>;
  payload: Uint8Array;
  payloadIsJson: boolean;
  contentType: string;
  contentEncoding: string | null;
}

/** Checked against the grammar, the payload limit, what this publisher's source may publish and what is registered; throws `AppError`. */
export function checkItem(
  publisher: Publisher,
  item: PublishItem,
  maxPayloadBytes: number,
): { input: PublishEventInput; source: PublishSource } {
  const input: PublishEventInput = parseInput(
    "isRelay" in publisher.ref ? OperationalEventInput : PublishEventInput,
    item.fields,
  );
  if (item.payload.length > maxPayloadBytes) {
    throw new AppError("payload_too_large", `The payload is larger than ${maxPayloadBytes} bytes.`);
  }
  const source = resolveSource(publisher, input.source ?? null);
  if (!source.allows(input.type)) {
    throw new AppError("event_type_not_allowed", `Source ${source.name} may not publish ${input.type}.`);
  }
  if (!("isRelay" in publisher.ref)) checkRegistered(publisher.config, input, item);
  return { input, source };
}

function resolveSource({ config, sourceId }: Publisher, named: string | null): PublishSource {
  if (named === null && sourceId === null) {
    throw invalidField("source", "is required with an admin key: the id or name of a source");
  }
  const wanted = named ?? sourceId;
  // A name may look like an id; the id is meant then.
  const source = config.sources.find(({ id }) => id === wanted) ?? config.sources.find(({ name }) => name === named);
  if (!source) throw invalidField("source", "is not a source of this tenant");
  if (sourceId !== null && source.id !== sourceId) {
    throw new AppError("forbidden", "This key may publish for its own source only.");
  }
  return source;
}
