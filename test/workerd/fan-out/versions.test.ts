import { expect, test } from "vitest";
import { expandFanOut } from "../../../src/app/publish/expand-fan-out.ts";
import { parseDeliveryId } from "../../../src/core/ids.ts";
import { createCrowd } from "../support/crowd.ts";
import { publish } from "../support/worker.ts";

const MANY = 1_400;
/** By the last digit of an endpoint's number. */
const PINS = [3, 4, 9, null] as const;

test(
  "what follows a large fan-out carries the versions of its acceptance, whatever has become of pins and versions since",
  { timeout: 60_000 },
  async () => {
    const crowd = await createCrowd(MANY);
    const { api, id: tenantId } = crowd.tenant;
    const pinOf = (endpointId: string) => PINS[Number(endpointId.slice(-8)) % PINS.length]!;
    const pins = (sql: string) =>
      crowd.db.batch([
        crowd.db
          .prepare(`update subscription set schema_version = ${sql} where tenant_id = ? and deleted_at is null`)
          .bind(tenantId),
        crowd.db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenantId),
      ]);
    await pins("case substr(endpoint_id, -8) % 4 when 0 then 3 when 1 then 4 when 2 then 9 end");
    for (const schema_version of [3, 4]) {
      await api.post("/v1/event-types", { name: "order.created", schema_version });
    }
    const fields = { type: "order.created", source: "orders", schema_version: 3 };
    const event = await publish(crowd.shard, crowd.tenant, fields, '{"n":1}', [4]);
    expect(event.deliveryCount).toBe(MANY);
    expect(await crowd.openParts()).toBeGreaterThan(0);

    await pins("5");
    const force = { retired: true, force: true };
    for (const schema_version of [3, 4]) await api.patch("/v1/event-types/order.created", { schema_version, ...force });
    // Whoever changes its endpoint gets what it is owed in the same batch.
    const changed = crowd.endpointIds.filter((id, n) => n >= 100 && !crowd.isStrict(id)).slice(0, 4);
    for (const id of changed) await api.post(`/v1/endpoints/${id}/disable`);
    await expandFanOut(crowd.expand, { tenantId, eventId: event.id });

    const deliveries = await crowd.deliveriesOf(event.id);
    expect(deliveries.size).toBe(MANY);
    expect(await crowd.openParts()).toBe(0);
    for (const [endpointId, row] of deliveries) {
      const pin = pinOf(endpointId);
      expect(row["schema_version"]).toBe(pin ?? 4);
      expect(row["final_outcome"]).toBe(pin === 9 ? "version_not_published" : null);
      expect(row["terminal_at"]).toBe(pin === 9 ? row["created_at"] : null);
      if (pin === 9) expect(row).toMatchObject({ status: "failed", lane_key: null, next_attempt_at: null });
    }
    const rung = crowd.rung.flatMap(({ deliveryId }) => {
      const ref = parseDeliveryId(deliveryId);
      return ref.ok ? ref.value.endpointId : [];
    });
    expect(rung.length).toBeGreaterThan(0);
    expect(rung.filter((endpointId) => pinOf(endpointId) === 9)).toEqual([]);

    // From the next event on it is as it is now.
    const next = await publish(crowd.shard, crowd.tenant, fields, '{"n":1}', [5]);
    expect(next.deliveries.every(({ status }) => status === "pending")).toBe(true);
    await expandFanOut(crowd.expand, { tenantId, eventId: next.id });
    const later = [...(await crowd.deliveriesOf(next.id)).values()];
    expect(new Set(later.map((row) => row["schema_version"]))).toEqual(new Set([5]));
  },
);
