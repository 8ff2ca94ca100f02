import { z } from "zod";
import { OPERATIONAL_EVENT_TYPES } from "../../core/event-type.ts";
import { EVENT_KEY } from "../../core/grammar.ts";
import { isEventId } from "../../core/ids.ts";
import type { CheckBudget } from "../../core/json-schema-validate.ts";
import { AppError, invalidField } from "../app-error.ts";
import { EventTypeName, SchemaVersion, Time } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import type { PublishedVariant } from "../../core/publish-body.ts";
import { checkRegistered } from "./check-registered.ts";
import { checkVariants, type CheckedVariant } from "./check-variants.ts";
import type { Publisher, PublishSource } from "./publish-config.ts";

const EventKey = z.string().regex(EVENT_KEY, "must be 1 to 256 visible ASCII characters");

/** Everything of a publish but its payload (contract §2). */
export const PublishEventInput = z.strictObject({
  type: EventTypeName,
  source: z.string().min(1).max(64).nullish(),
  occurred_at: Time.nullish(),
  schema_version: SchemaVersion.nullish(),
  idempotency_key: EventKey.nullish(),
  ordering_key: EventKey.nullish(),
  cause_event_id: z.string().refine(isEventId, "must be an event id").nullish(),
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
  /** The payload in further versions, as they came. */
  variants?: PublishedVariant[];
}

/** What an item says. */
export interface ReadItem {
  input: PublishEventInput;
  schemaVersion: number;
  variants: CheckedVariant[];
  source: PublishSource;
}

/** Held to the grammar and the payload limit; throws `AppError`. */
export function readItem(publisher: Publisher, item: PublishItem, maxPayloadBytes: number): ReadItem {
  const input: PublishEventInput = parseInput(
    "isRelay" in publisher.ref ? OperationalEventInput : PublishEventInput,
    item.fields,
  );
  if (item.payload.length > maxPayloadBytes) {
    throw new AppError("payload_too_large", `The payload is larger than ${maxPayloadBytes} bytes.`);
  }
  const source = resolveSource(publisher, input.source ?? null);
  const schemaVersion = input.schema_version ?? 1;
  const variants = checkVariants(schemaVersion, item.variants ?? [], maxPayloadBytes);
  return { input, schemaVersion, variants, source };
}

/** Held to what its source may publish and to what is registered, both of which may change; throws `AppError`. */
export function checkItem(publisher: Publisher, item: PublishItem, read: ReadItem, budget: CheckBudget): void {
  const { input, source, schemaVersion, variants } = read;
  if (!source.allows(input.type)) {
    throw new AppError("event_type_not_allowed", `Source ${source.name} may not publish ${input.type}.`);
  }
  if ("isRelay" in publisher.ref) return;
  checkRegistered(publisher.config, { ...item, type: input.type, schemaVersion, variants }, budget);
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
