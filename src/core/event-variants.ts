import { joinPayloadRef, splitPayloadRef } from "./payload-ref.ts";

/** Versions that one event may carry beside its own: more are not side by side for long. */
export const MAX_VARIANTS = 4;

/** A further version of an event's payload. Its bytes stand behind those of the versions before it, in the event's object. */
export interface EventVariant {
  schemaVersion: number;
  payloadSize: number;
  /** Hex. */
  payloadSha256: string;
}

/** Where the bytes of one version are, and what they must be. */
interface StoredPayload {
  payloadRef: string;
  payloadSize: number;
  payloadSha256: string;
}

interface WithVariants extends StoredPayload {
  schemaVersion: number;
  /** Lowest version first, as they are stored. */
  variants: EventVariant[];
}

/** The versions that an event carries, its own first. */
export function versionsOf(event: { schemaVersion: number; variants: readonly { schemaVersion: number }[] }): number[] {
  return [event.schemaVersion, ...event.variants.map(({ schemaVersion }) => schemaVersion)];
}

/** As the ledger has them, which is also how two events are compared. Null for none. */
export function encodeVariants(variants: EventVariant[]): string | null {
  if (variants.length === 0) return null;
  return JSON.stringify(
    variants.map(({ schemaVersion, payloadSize, payloadSha256 }) => [schemaVersion, payloadSize, payloadSha256]),
  );
}

export function decodeVariants(text: string | null): EventVariant[] {
  const rows = text === null ? [] : (JSON.parse(text) as [number, number, string][]);
  return rows.map(([schemaVersion, payloadSize, payloadSha256]) => ({ schemaVersion, payloadSize, payloadSha256 }));
}

/** The payload of a version; null when the event does not carry it. */
export function payloadOfVersion(event: WithVariants, schemaVersion: number): StoredPayload | null {
  const { payloadRef, payloadSize, payloadSha256 } = event;
  if (schemaVersion === event.schemaVersion) return { payloadRef, payloadSize, payloadSha256 };
  const [objectKey, start] = splitPayloadRef(payloadRef);
  let offset = start + payloadSize;
  for (const variant of event.variants) {
    if (variant.schemaVersion === schemaVersion) {
      const { payloadSize, payloadSha256 } = variant;
      return { payloadRef: joinPayloadRef(objectKey, offset), payloadSize, payloadSha256 };
    }
    offset += variant.payloadSize;
  }
  return null;
}

/** Bytes of all versions together, from `payloadRef` on. */
export function storedSize({ payloadSize, variants }: Pick<WithVariants, "payloadSize" | "variants">): number {
  return variants.reduce((sum, variant) => sum + variant.payloadSize, payloadSize);
}
