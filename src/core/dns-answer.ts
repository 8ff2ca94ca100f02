import { z } from "zod";
import { isAddress, isPublicAddress } from "./address-range.ts";
import { ok, refuse, type Result } from "./result.ts";

/** DNS over HTTPS in its JSON form, as Google and Cloudflare serve it (`application/dns-json`). */

/** `A` and `AAAA`: both are asked for, since the runtime may connect to either. */
export const RECORD_TYPES = ["A", "AAAA"] as const;

/**
 * What the addresses of a host mean for a request: `public` goes out, `blocked` never does, and with `unresolvable`, no
 * address at all, there is nothing to connect to: that is the endpoint's fault, as when the runtime finds out.
 */
export interface HostVerdict {
  verdict: "public" | "blocked" | "unresolvable";
  /** How long it may be remembered: the shortest of the records it was judged by; 0 for not at all. */
  ttlSeconds: number;
}

/** Why nothing can be said. It is the relay's or its resolver's fault, never the endpoint's. */
export type LookUpFault = "malformed" | "truncated" | "refused";

const DnsAnswer = z.object({
  Status: z.int(),
  TC: z.boolean().optional(),
  Question: z.array(z.object({ name: z.string() })).optional(),
  Answer: z.array(z.object({ type: z.int(), TTL: z.number().min(0), data: z.string() })).optional(),
});

const A = 1;
const AAAA = 28;
/** RFC 1035 §4.1.1. SERVFAIL is mostly said of names whose own servers do not answer, or whose DNSSEC is broken. */
const NOERROR = 0;
const SERVFAIL = 2;
const NXDOMAIN = 3;

/**
 * Judges a host by the answers to `A` and `AAAA`. Every address must be public, those that stand in it as IPv4 too; a chain of
 * CNAMEs counts for the addresses at its end. One answer that cannot be used is enough for a fault, unless another blocks.
 */
export function judgeHost(hostname: string, bodies: readonly string[]): Result<HostVerdict, LookUpFault> {
  const answers = bodies.map((body) => readAnswer(hostname, body));
  const read = answers.flatMap((answer) => (answer.ok ? [answer.value] : []));
  const ttlSeconds = Math.min(...read.flatMap(({ ttls }) => ttls));
  if (read.some(({ addresses }) => addresses.some((address) => !isPublicAddress(address)))) {
    return ok({ verdict: "blocked", ttlSeconds });
  }
  const fault = answers.find((answer) => !answer.ok);
  if (fault && !fault.ok) return fault;
  const isResolved = read.some(({ addresses }) => addresses.length > 0) && read.every(({ failed }) => !failed);
  // When a name appears is not for the relay to guess: nobody said how long it will not.
  return ok(isResolved ? { verdict: "public", ttlSeconds } : { verdict: "unresolvable", ttlSeconds: 0 });
}

function readAnswer(
  hostname: string,
  body: string,
): Result<{ addresses: string[]; ttls: number[]; failed: boolean }, LookUpFault> {
  const parsed = DnsAnswer.safeParse(parseJson(body));
  if (!parsed.success) return refuse("malformed");
  const { Status: status, TC: isTruncated, Question: questions = [], Answer: records = [] } = parsed.data;
  if (questions.some(({ name }) => name.toLowerCase().replace(/\.$/, "") !== hostname)) return refuse("malformed");
  if (isTruncated) return refuse("truncated");
  if (status === SERVFAIL || status === NXDOMAIN) return ok({ addresses: [], ttls: [], failed: status === SERVFAIL });
  if (status !== NOERROR) return refuse("refused");
  const addresses = records.flatMap(({ type, data }) => (type === A || type === AAAA ? [data] : []));
  if (!addresses.every(isAddress)) return refuse("malformed");
  return ok({ addresses, ttls: records.map(({ TTL }) => TTL), failed: false });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
