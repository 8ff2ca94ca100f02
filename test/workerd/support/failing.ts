import { recordAttempt } from "../../../src/app/deliver/record-attempt.ts";
import type { AttemptReport } from "../../../src/app/deliver/report.ts";
import { answered, claim, report } from "./closing.ts";
import type { Scene, SceneDelivery } from "./scene.ts";

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const URL = "https://consumer.example/hook";

/** A moment at which all that a test publishes is due. */
export const soon = () => Date.now() + 60_000;

interface Row {
  failing_since: number | null;
  failure_noted_at: number | null;
  disabled_at: number | null;
  disabled_reason: string | null;
  revision: number;
  tenant_revision: number;
}

export const read = async ({ db, endpointId }: Pick<Scene, "db" | "endpointId">) =>
  (await db
    .prepare(
      `select failing_since, failure_noted_at, disabled_at, disabled_reason, e.revision, t.revision as tenant_revision
       from endpoint e join tenant t on t.id = e.tenant_id where e.id = ?`,
    )
    .bind(endpointId)
    .first<Row>())!;
export const failingSince = async (scene: Pick<Scene, "db" | "endpointId">) => (await read(scene)).failing_since;
export const firstRequestAt = ({ db, endpointId }: Scene) =>
  db.prepare("select min(requested_at) as at from attempt where endpoint_id = ?").bind(endpointId).first<number>("at");
export const endpoint = async ({ tenant, endpointId }: Scene) =>
  (await tenant.api.get(`/v1/endpoints/${endpointId}`)).body;

/** Under way since `at`; how it ends is for the test to tell. A 422 ends its delivery, so that no work is left. */
export async function begin(scene: Scene, at: number, of?: SceneDelivery, n = 1) {
  const delivery = of ?? (await scene.publishOne());
  const token = crypto.randomUUID();
  await claim(scene, delivery, n, token, at);
  // As it is loaded for its claim.
  const [loaded] = (await scene.deps.loadDeliveries([delivery.ref])).deliveries;
  const { disablesAt, url: endpointUrl } = loaded!.endpoint;
  const told = (wire: AttemptReport["wire"]): AttemptReport => {
    return { ...report(delivery, n, token, wire), requestedAt: at, respondedAt: at + 5, endpointUrl, disablesAt };
  };
  return {
    delivery,
    endAs: (wire: AttemptReport["wire"], deps = scene.deps) => recordAttempt(deps, told(wire)),
    end: (statusCode: number, deps = scene.deps) => recordAttempt(deps, told(answered(statusCode))),
  };
}
export const fail = async (scene: Scene, at: number) => (await begin(scene, at)).end(422);
export const succeed = async (scene: Scene, at: number) => (await begin(scene, at)).end(200);
