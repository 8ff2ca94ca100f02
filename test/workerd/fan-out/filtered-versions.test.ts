import { expect, test } from "vitest";
import { expandFanOut } from "../../../src/app/publish/expand-fan-out.ts";
import { createCrowd } from "../support/crowd.ts";
import { publish } from "../support/worker.ts";

const MANY = 1_750;
const TYPE = "invoice.paid";

/** By the number of an endpoint: what its subscription asks for, and what becomes of the event in versions 3 and 4. */
const KINDS: {
  pin: number | null;
  filter: string | null;
  scope?: null;
  /** With a second subscription, younger, that asks for version 3 of what is over 100. */
  hasSecond?: true;
  gets: { version: number; by: "first" | "second"; fault: string | null } | null;
}[] = [
  { pin: 3, filter: "payload.total > 100", gets: { version: 3, by: "first", fault: null } },
  { pin: 4, filter: "payload.amount > 100", hasSecond: true, gets: { version: 4, by: "first", fault: null } },
  { pin: 4, filter: "payload.amount > 1000", hasSecond: true, gets: { version: 3, by: "second", fault: null } },
  { pin: 4, filter: 'payload.amount > "a"', gets: null },
  { pin: 9, filter: "payload.missing > 1", gets: { version: 9, by: "first", fault: "version_not_published" } },
  { pin: null, filter: null, scope: null, gets: null },
  { pin: null, filter: null, gets: { version: 4, by: "first", fault: null } },
];

test(
  "a large fan-out is owed as filters, pins and scopes said at its acceptance, with what each filter cost",
  { timeout: 60_000 },
  async () => {
    const crowd = await createCrowd(MANY);
    const { api, id: tenantId } = crowd.tenant;
    const kindOf = (endpointId: string) => KINDS[Number(endpointId.slice(-8)) % KINDS.length]!;
    const second = (endpointId: string) => crowd.subscriptionOf(endpointId).replace(/^sub_./, "sub_!");
    const rows = crowd.endpointIds.map((id) => {
      const { pin, filter, scope, hasSecond } = kindOf(id);
      return [crowd.subscriptionOf(id), pin, filter, scope === null ? null : "billing", hasSecond ? second(id) : null];
    });
    const bump = () => crowd.db.prepare("update tenant set revision = revision + 1 where id = ?").bind(tenantId);
    await crowd.db.batch([
      crowd.db
        .prepare(
          `update subscription set schema_version = j.value ->> 1, filter = j.value ->> 2, entitlement_scope = j.value ->> 3
           from json_each(?1) j where tenant_id = ?2 and subscription.id = j.value ->> 0`,
        )
        .bind(JSON.stringify(rows), tenantId),
      crowd.db
        .prepare(
          `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, schema_version, filter, entitlement_scope,
             created_at)
           select s.tenant_id, j.value ->> 4, s.endpoint_id, '*', 3, 'payload.total > 100', 'billing', 1
           from json_each(?1) j cross join subscription s on s.tenant_id = ?2 and s.id = j.value ->> 0
           where j.value ->> 4 is not null`,
        )
        .bind(JSON.stringify(rows), tenantId),
      bump(),
    ]);
    for (const schema_version of [3, 4]) {
      await api.post("/v1/event-types", { name: TYPE, schema_version, required_scope: "billing" });
    }

    const fields = { type: TYPE, source: "orders", schema_version: 3 };
    const event = await publish(crowd.shard, crowd.tenant, fields, '{"total":101}', [[4, '{"amount":101}']]);
    const owing = crowd.endpointIds.filter((id) => kindOf(id).gets !== null);
    const failing = crowd.endpointIds.filter((id) => kindOf(id).filter?.includes('"a"'));
    expect(event).toMatchObject({ deliveryCount: owing.length, skippedCount: failing.length });
    expect(event.skipped).toEqual(
      event.skipped.map(({ subscriptionId }) => ({ subscriptionId, reason: "type_mismatch" })),
    );
    expect(await crowd.openParts()).toBeGreaterThan(0);
    const waiting = await crowd.deliveriesOf(event.id);
    expect(waiting.size).toBeLessThan(owing.length);

    // What becomes of subscriptions and endpoints since changes nothing of what is owed.
    await crowd.db.batch([
      crowd.db
        .prepare(
          "update subscription set schema_version = 4, filter = 'false' where tenant_id = ? and deleted_at is null",
        )
        .bind(tenantId),
      bump(),
    ]);
    await api.patch(`/v1/event-types/${TYPE}`, { schema_version: 3, retired: true, force: true });
    for (const id of owing.filter((one) => !waiting.has(one)).slice(0, 5))
      await api.post(`/v1/endpoints/${id}/disable`);
    await expandFanOut(crowd.expand, { tenantId, eventId: event.id });

    const deliveries = await crowd.deliveriesOf(event.id);
    expect([...deliveries.keys()].toSorted()).toEqual(owing);
    for (const [endpointId, row] of deliveries) {
      const { gets, filter } = kindOf(endpointId);
      const { version, by, fault } = gets!;
      expect(row).toMatchObject({
        schema_version: version,
        subscription_id: by === "first" ? crowd.subscriptionOf(endpointId) : second(endpointId),
        final_outcome: fault,
        filter_match_steps: filter === null ? null : fault === null ? 4 : 3,
      });
    }
    const rung = new Set(crowd.rung.map(({ deliveryId }) => deliveryId));
    expect(rung.size).toBe(
      [...deliveries].filter(([id, row]) => !waiting.has(id) && row["final_outcome"] === null).length,
    );
  },
);
