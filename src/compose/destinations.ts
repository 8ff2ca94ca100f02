import { createHostCheck, type VerdictCache } from "../app/deliver/check-host.ts";
import type { DeliverDeps } from "../app/deliver/deliver.ts";
import { parseSettings } from "../env.ts";
import { runtime } from "./runtime.ts";

const hostVerdicts: VerdictCache = new Map();

/** Where endpoints may lead. */
export function destinationRules(env: Env) {
  const settings = parseSettings(env);
  return { allowPrivate: settings.ALLOW_PRIVATE_DESTINATIONS, ownHosts: settings.OWN_HOSTS };
}

/** Where private destinations are allowed there is nothing to find out about an address. */
export function hostCheck(env: Env, context: Pick<ExecutionContext, "exports">): DeliverDeps["checkHost"] {
  const { DOH_URL: resolverUrl, ALLOW_PRIVATE_DESTINATIONS: allowPrivate } = parseSettings(env);
  if (resolverUrl === undefined || allowPrivate) return null;
  const lookUp = (hostname: string) => context.exports.Sender.lookUp({ resolverUrl, hostname });
  return createHostCheck({ ...runtime, lookUp }, hostVerdicts);
}
