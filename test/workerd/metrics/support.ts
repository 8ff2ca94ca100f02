import { env } from "cloudflare:workers";
import worker from "../../../src/index.ts";
import { parseExposition, type Samples } from "../../support/exposition.ts";
import { createTestContext } from "../support/worker.ts";

export const TOKEN = "metrics-token-of-tests";

/** The Worker of a deployment that can be scraped. */
export const scraped = { ...(env as Env), METRICS_TOKEN: TOKEN } as unknown as Env;

export function get(
  bindings: Env,
  headers: Record<string, string> = { Authorization: `Bearer ${TOKEN}` },
  path = "/metrics",
  method = "GET",
): Promise<Response> {
  const { context } = createTestContext();
  const request = new Request(`http://relay.test${path}`, { headers, method });
  return Promise.resolve(worker.fetch(request, bindings, context as unknown as ExecutionContext));
}

export async function scrape(bindings = scraped): Promise<Samples> {
  const response = await get(bindings);
  if (response.status !== 200) throw new Error(await response.text());
  return parseExposition(await response.text());
}

/** What each sample has risen by during some work: files share a runtime, and what others did is in the totals. */
export async function risesOf(work: () => Promise<unknown>): Promise<(sample: string) => number> {
  const before = await scrape();
  await work();
  const after = await scrape();
  return (sample) => {
    const [from, to] = [before.get(sample) ?? 0, after.get(sample)];
    if (to === undefined) throw new Error(`There is no ${sample}.`);
    return to - from;
  };
}
