import { createPublishConfigCache, type PublishConfigCache } from "../app/publish/publish-config.ts";

const publishConfigs = new Map<string, PublishConfigCache>();

/** What this isolate remembers of a shard's tenants between publishes. */
export function publishConfigsOf(shard: string): PublishConfigCache {
  let cache = publishConfigs.get(shard);
  if (!cache) publishConfigs.set(shard, (cache = createPublishConfigCache()));
  return cache;
}
