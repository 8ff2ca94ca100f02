import type { HostVerdict } from "../../core/dns-answer.ts";
import type { Runtime } from "../runtime.ts";

export type Verdict = HostVerdict["verdict"];

export interface CheckHostDeps extends Pick<Runtime, "now"> {
  /** Asks for a host's addresses and judges them; `fault` when nothing can be said of them. Never throws. */
  lookUp(hostname: string): Promise<HostVerdict | { verdict: "fault"; reason: string }>;
}

/** Verdicts by host name, shared by an isolate. What is remembered decides no longer than DNS says, and a minute at most. */
export type VerdictCache = Map<string, { verdict: Verdict; until: number }>;

const MAX_AGE_MS = 60_000;
const MAX_HOSTS = 1_000;

/**
 * Checks where a host's name leads, before anything is claimed. Throws when that cannot be found out: what was not looked up
 * is not safe, and it is not the endpoint's fault.
 */
export function createHostCheck(deps: CheckHostDeps, cache: VerdictCache): (hostname: string) => Promise<Verdict> {
  /** Questions under way. Not shared by the isolate: a promise of one invocation may never settle for another. */
  const asking = new Map<string, Promise<Verdict>>();

  async function ask(hostname: string): Promise<Verdict> {
    const askedAt = deps.now();
    const answer = await deps.lookUp(hostname);
    if (answer.verdict === "fault") throw new Error(`where the host's name leads is not known: ${answer.reason}`);
    const ageMs = Math.min(answer.ttlSeconds * 1000, MAX_AGE_MS);
    if (ageMs > 0) remember(cache, hostname, { verdict: answer.verdict, until: askedAt + ageMs });
    return answer.verdict;
  }

  return (hostname) => {
    const known = cache.get(hostname);
    if (known && known.until > deps.now()) return Promise.resolve(known.verdict);
    const underWay = asking.get(hostname) ?? ask(hostname).finally(() => asking.delete(hostname));
    asking.set(hostname, underWay);
    return underWay;
  };
}

/** What was remembered first is forgotten first. */
function remember(cache: VerdictCache, hostname: string, entry: { verdict: Verdict; until: number }): void {
  cache.delete(hostname);
  if (cache.size >= MAX_HOSTS) cache.delete(cache.keys().next().value!);
  cache.set(hostname, entry);
}
