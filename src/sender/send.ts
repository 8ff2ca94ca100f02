import { concatBytes } from "../core/bytes.ts";
import { boundResponseHeaders } from "../core/response-headers.ts";
import type { WireResult } from "../core/outcome.ts";
import { sha256Hex } from "../core/sha256.ts";

/** At most this much of an answer is read; the rest is cancelled. */
const MAX_BODY_BYTES = 65_536;

export interface OutboundRequest {
  url: string;
  headers: [string, string][];
  body: Uint8Array;
  /** For headers and body together. */
  timeoutMs: number;
}

export interface OutboundAnswer {
  wire: WireResult;
  /** Hex, of what was read of the body; null when no answer began. */
  bodySha256: string | null;
  headers: [string, string][];
}

/**
 * Makes the one HTTP request of an attempt. Never throws: whatever the wire does is an answer. Redirects are not followed,
 * and the resolved address cannot be pinned on Workers, so the URL was checked before it came here.
 */
export async function sendRequest(request: OutboundRequest): Promise<OutboundAnswer> {
  const abort = new AbortController();
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    abort.abort();
  }, request.timeoutMs);

  let response: Response | null = null;
  const body = createBodyHash();
  try {
    response = await fetch(request.url, {
      method: "POST",
      headers: request.headers,
      body: request.body as BodyInit,
      redirect: "manual",
      signal: abort.signal,
    });
    await readCapped(response, body);
    const wire: WireResult = { kind: "response", status: response.status, bodyComplete: true };
    return { wire, bodySha256: await body.digest(), headers: boundResponseHeaders(response.headers) };
  } catch (error) {
    if (!response) {
      const wire: WireResult = timedOut
        ? { kind: "timeout", status: null }
        : { kind: "thrown", message: error instanceof Error ? error.message : String(error) };
      return { wire, bodySha256: null, headers: [] };
    }
    const wire: WireResult = timedOut
      ? { kind: "timeout", status: response.status }
      : { kind: "response", status: response.status, bodyComplete: false };
    return { wire, bodySha256: await body.digest(), headers: boundResponseHeaders(response.headers) };
  } finally {
    clearTimeout(timer);
    // Ends the connection where the cap or the deadline cut it; does nothing to one that is done.
    abort.abort();
  }
}

/** Reads to the end or to the cap, whichever comes first. The deadline's abort breaks a read that waits. */
async function readCapped(response: Response, body: { add(chunk: Uint8Array): void }): Promise<void> {
  // Without a body there is nothing to decode, whatever encoding its headers name.
  if (response.headers.get("content-length") === "0") return;
  const reader = response.body?.getReader();
  if (!reader) return;
  let left = MAX_BODY_BYTES;
  while (left > 0) {
    const { done, value } = await reader.read();
    if (done) return;
    body.add(value.subarray(0, left));
    left -= value.length;
  }
  await reader.cancel();
}

function createBodyHash() {
  const chunks: Uint8Array[] = [];
  return {
    add: (chunk: Uint8Array) => void chunks.push(chunk),
    async digest(): Promise<string> {
      return sha256Hex(concatBytes(chunks));
    },
  };
}
