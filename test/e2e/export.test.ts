import { expect, test } from "vitest";
import { createClient, createTenant, expectStatus, publish } from "./support/client.ts";
import { sharedRelay } from "./support/relay-process.ts";

const relay = await sharedRelay();

test.each(["events", "deliveries", "attempts"])(
  "an export of %s is NDJSON whose last line says how to go on",
  async (kind) => {
    const tenant = await createTenant(relay.url);
    await publish(tenant);
    const answer = await tenant.admin.get(`/v1/export/${kind}`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("Content-Type")).toBe("application/x-ndjson");
    expect(answer.body.endsWith("\n")).toBe(true);
    // What is younger than five minutes is for the next time.
    const lines = answer.body.trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    const { next_cursor: cursor, ...last } = JSON.parse(lines[0]);
    expect(last).toEqual({ has_more: false, until: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect(Date.parse(last.until)).toBeLessThan(Date.now());
    expect((await tenant.admin.get(`/v1/export/${kind}?cursor=${cursor}`)).status).toBe(200);
    expect((await createClient(relay.url, null).get(`/v1/export/${kind}`)).status).toBe(401);
    const key = { scope: "publish", source_id: tenant.sourceId };
    const { key: publishKey } = await expectStatus(201, tenant.admin.post("/v1/api-keys", key));
    expect((await createClient(relay.url, publishKey).get(`/v1/export/${kind}`)).status).toBe(403);
  },
);
