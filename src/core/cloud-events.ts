import type { OutboundEvent } from "./outbound.ts";
import { formatTime } from "./timestamps.ts";

/**
 * CloudEvents 1.0.2, binary content mode of its HTTP binding: the payload is the body under its own content type, which is
 * `datacontenttype`, and each other attribute is a header.
 * https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md
 */
export function cloudEventHeaders(event: OutboundEvent): [string, string][] {
  return [
    ["ce-specversion", "1.0"],
    ["ce-id", encodeAttribute(event.id)],
    ["ce-source", encodeAttribute(`/sources/${event.sourceName}`)],
    ["ce-type", encodeAttribute(event.type)],
    ["ce-time", formatTime(event.occurredAt)],
    ...(event.orderingKey === null
      ? []
      : [["ce-subject", encodeAttribute(event.orderingKey)] satisfies [string, string]]),
  ];
}

// Space, `"`, `%`, and what is no printable ASCII. With `u` a surrogate pair is one character, as the binding wants it.
const ENCODED = /[^\x21\x23\x24\x26-\x7e]/gu;

/** The value of a header for a text (section 3.1.3.2): percent-encoded UTF-8. A lone surrogate is no text and counts as U+FFFD. */
export function encodeAttribute(text: string): string {
  return text.replace(ENCODED, (character) =>
    Array.from(
      new TextEncoder().encode(character),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
    ).join(""),
  );
}
