import { expect, test } from "vitest";
import { createEndpoint, createTenant, expectStatus, publish, terminalDelivery } from "./support/client.ts";
import { withReceiver } from "./support/receiver.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

test("reports say of what was really delivered how long it took, who sent it, in which version, and what filters cost", () =>
  withReceiver(async (receiver) => {
    const tenant = await createTenant(relay.url);
    const read = (path: string) => expectStatus(200, tenant.admin.get(`/v1/reports/${path}`));
    const endpoint = await createEndpoint(tenant, { url: receiver.url });
    const subscription = await expectStatus(
      200,
      tenant.admin.call("PATCH", `/v1/subscriptions/${endpoint.subscriptionId}`, { filter: "payload.n > 0" }),
    );
    const occurredAt = new Date(Date.now() - 60_000).toISOString();
    const delivered = [];
    for (let n = 1; n <= 3; n++) {
      const { deliveries } = await publish(tenant, { payload: { n }, occurred_at: occurredAt });
      delivered.push(await terminalDelivery(tenant, deliveries[0].id));
    }
    const ms = (later: string, earlier: string) => Date.parse(later) - Date.parse(earlier);
    const middle = (values: number[]) => values.toSorted((a, b) => a - b)[1];
    const events = await Promise.all(
      delivered.map(({ event_id }) => expectStatus(200, tenant.admin.get(`/v1/events/${event_id}`))),
    );
    const attempts = delivered.map((delivery) => delivery.attempts[0]);

    const latency = await read("latency");
    expect(latency).toMatchObject({ complete: true, groups: 1 });
    expect(latency.data[0]).toMatchObject({
      source_id: tenant.sourceId,
      events: 3,
      undelivered_events: 0,
      delivered: 3,
      occurred_to_delivered_ms: { count: 3, p50: middle(attempts.map((a) => ms(a.responded_at, occurredAt))) },
      occurred_to_relayed_ms: { count: 3, p50: middle(events.map((event) => ms(event.relayed_at, occurredAt))) },
      relayed_to_first_request_ms: {
        count: 3,
        p50: middle(attempts.map((a, i) => ms(a.requested_at, events[i].relayed_at))),
      },
      limits_wait_ms: { count: 3, p50: 0 },
    });
    expect(latency.data[0].occurred_to_relayed_ms.p50).toBeGreaterThan(59_999);

    const byWorker = await read("attempts");
    expect(byWorker.data.map((row: any) => row.worker_id).toSorted()).toEqual(
      [...new Set(attempts.map((attempt) => attempt.worker_id))].toSorted(),
    );
    const regions = await read("attempts?by=relay_region");
    expect(regions.data).toMatchObject([{ relay_region: attempts[0].relay_region, succeeded: 3, unreachable: 0 }]);

    const versions = await read(`schema-versions?event_type=${events[0].type}&schema_version=1`);
    expect(versions.data).toMatchObject([
      {
        events: 3,
        subscriptions: [
          {
            subscription_id: subscription.id,
            decided_by: "recent_event",
            withheld: null,
            received: [{ schema_version: 1, deliveries: 3 }],
          },
        ],
      },
    ]);
    const filters = await read("filters");
    expect(filters.data).toMatchObject([
      { subscription_id: subscription.id, filter_match_steps: { count: 3, max: delivered[0].filter_match_steps } },
    ]);
  }));
