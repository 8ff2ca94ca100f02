import { concatBytes } from "../core/bytes.ts";
import { judgeHost, RECORD_TYPES, type HostVerdict } from "../core/dns-answer.ts";

export interface LookUpRequest {
  /** Where DNS over HTTPS is answered in its JSON form. */
  resolverUrl: string;
  hostname: string;
}

/** A fault is an answer as well: an error would not cross RPC as what it is. */
export type LookUpAnswer = HostVerdict | { verdict: "fault"; reason: string };

const TIMEOUT_MS = 3_000;
/** An answer of DNS is 64 KiB at most, and one with a dozen addresses 2 KiB. */
const MAX_BODY_BYTES = 16_384;

/** Asks for all addresses of a host, and judges them. Never throws. */
export async function lookUpHost({ resolverUrl, hostname }: LookUpRequest): Promise<LookUpAnswer> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), TIMEOUT_MS);
  try {
    const bodies = await Promise.all(RECORD_TYPES.map((type) => ask(resolverUrl, hostname, type, abort.signal)));
    const judged = judgeHost(hostname, bodies);
    return judged.ok ? judged.value : { verdict: "fault", reason: judged.error };
  } catch (error) {
    const reason = abort.signal.aborted ? `no answer within ${TIMEOUT_MS} ms` : String(error);
    return { verdict: "fault", reason };
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

async function ask(resolverUrl: string, hostname: string, type: string, signal: AbortSignal): Promise<string> {
  const url = new URL(resolverUrl);
  url.searchParams.set("name", hostname);
  url.searchParams.set("type", type);
  const response = await fetch(url, { headers: { Accept: "application/dns-json" }, redirect: "manual", signal });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the resolver answered ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    // Leaving the loop cancels the rest.
    if (size > MAX_BODY_BYTES) throw new Error("the resolver's answer is too large");
    chunks.push(chunk);
  }
  return new TextDecoder().decode(concatBytes(chunks));
}
