import { env } from "cloudflare:workers";
import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import type { AttemptReport } from "../../../src/app/deliver/report.ts";
import { publishOperational, type PublishOperationalDeps } from "../../../src/app/operational/publish-operational.ts";
import { composeOutbox } from "../../../src/compose/outbox.ts";
import { createCloseLedger } from "../../../src/storage/ledger/close.ts";
import { answered, claim as claimAttempt, report as reportAttempt } from "../support/closing.ts";
import { createScene, type Scene, type SceneDelivery } from "../support/scene.ts";

/** A scene whose tenant has one more endpoint, which asks for operational events. */
export interface ToldScene extends Scene {
  /** Who is told. */
  listenerId: string;
  /** What is noted and not yet published. */
  notes(): Promise<{ id: string; type: string; facts: Record<string, unknown> }[]>;
  /** What was told, oldest first, with its payload. */
  told(): Promise<any[]>;
  /** Publishes what is noted, as the watchdog does. */
  publishNotes(over?: Partial<PublishOperationalDeps>): Promise<boolean>;
}

export async function createToldScene(
  pattern: string | null,
  endpoint: Record<string, unknown> = {},
): Promise<ToldScene> {
  const scene = await createScene(endpoint);
  return { ...scene, ...(await tell(scene, pattern)) };
}

/** Adds an endpoint to a scene that is subscribed to `pattern`; to nothing when that is null. */
export async function tell(scene: Scene, pattern: string | null): Promise<Omit<ToldScene, keyof Scene>> {
  const { api } = scene.tenant;
  const listener = await api.post("/v1/endpoints", { url: "https://pager.example/hook" });
  if (pattern !== null) {
    await api.post("/v1/subscriptions", { endpoint_id: listener.body.id, event_type_pattern: pattern });
  }
  return {
    listenerId: listener.body.id,
    async notes() {
      const { results } = await scene.db
        .prepare("select id, type, facts from operational_event where tenant_id = ? order by raised_at, id")
        .bind(scene.tenant.id)
        .all<{ id: string; type: string; facts: string }>();
      return results.map((row) => ({ ...row, facts: JSON.parse(row.facts) }));
    },
    async told() {
      const { data } = (await api.get("/v1/events")).body;
      const operational = data.filter(({ type }: any) => type.startsWith("hooklane.")).toReversed();
      return Promise.all(
        operational.map(async (event: any) => ({
          ...event,
          payload: (await api.get(`/v1/events/${event.id}/payload`)).body,
          deliveries: (await api.get(`/v1/deliveries?event_id=${event.id}`)).body.data,
        })),
      );
    },
    publishNotes: (over = {}) => publishOperational({ ...quietOutbox(scene), ...over }, scene.tenant.id),
  };
}

/** What publishes operational events, with nobody rung for them. */
export function quietOutbox({ tenant, context }: Pick<Scene, "tenant" | "context">): PublishOperationalDeps {
  return {
    ...composeOutbox(env as Env, context.context, tenant.shard),
    announce: () => {},
    announceLane: () => {},
    sleep: async () => {},
  };
}

/** Claims the first attempt of a delivery, as a consumer does before it sends. */
export const claim = (scene: Scene, delivery: SceneDelivery, token = "a") => claimAttempt(scene, delivery, 1, token);

/** What its receiver answered, with things in it that are nobody else's business. */
export const report = (delivery: SceneDelivery, status: number, token = "a"): AttemptReport => ({
  ...reportAttempt(delivery, 1, token, answered(status)),
  responseHeadersJson: '{"x-leak":"s3cret"}',
});

/** Puts an attempt on record without a bell: what is noted waits for `publishNotes`. */
export async function record(scene: Scene, attempt: AttemptReport): Promise<void> {
  const { closeAttempts } = createCloseLedger(scene.db);
  await recordAttempt({ ...scene.deps, closeAttempts }, attempt);
}

/** One more delivery, which dies of an answer. */
export async function die(scene: Scene, status = 400): Promise<SceneDelivery> {
  const delivery = await scene.publishOne();
  await claim(scene, delivery);
  await record(scene, report(delivery, status));
  return delivery;
}
