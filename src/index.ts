/** The Worker: requests, queues, cron. Wiring only. */
import { armWatchdogs, composeCentral, composeDeliver, composeMetrics, composeShard, shardsOf } from "./compose.ts";
import { createId } from "./core/ids.ts";
import { parseSettings } from "./env.ts";
import { createApp } from "./http/app.ts";
import { consumeReports, consumeRings, dropDeadRings } from "./queue/consumer.ts";

export { EndpointLane } from "./objects/endpoint-lane.ts";
export { Watchdog } from "./objects/watchdog.ts";
export { Sender } from "./sender/sender.ts";

const app = createApp({
  createRequestId: () => createId("req", crypto.getRandomValues(new Uint8Array(10))),
  now: () => Date.now(),
  composeCentral,
  composeShard,
  composeMetrics,
  metricsToken: (env) => parseSettings(env).METRICS_TOKEN,
  operatorToken: (env) => parseSettings(env).OPERATOR_TOKEN,
  shards: (env) => [...shardsOf(env).keys()],
  relayRegion: (env, request) => parseSettings(env).RELAY_REGION ?? (request.cf?.colo as string | undefined) ?? null,
});

export default {
  fetch: app.fetch,

  async queue(batch, env, context) {
    const depsOf = (shard: string) => composeDeliver(env, context, shard, "queue");
    switch (batch.queue) {
      case "hooklane-first-attempts":
      case "hooklane-retries":
        return consumeRings(batch, depsOf);
      case "hooklane-outcomes":
      case "hooklane-outcomes-dead":
        return consumeReports(batch, depsOf);
      default:
        return dropDeadRings(batch);
    }
  },

  scheduled: (_, env) => armWatchdogs(env),
} satisfies ExportedHandler<Env>;
