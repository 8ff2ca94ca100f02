import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, createTenant, eventually, listAll, type Client } from "./support/client.ts";
import { OPERATOR_TOKEN, sharedRelay, startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { sleep } from "./support/sleep.ts";

const PERIOD_MS = 10_000;
const PER_KEY = 4;

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess({ env: { PUBLISH_LIMITS: `free=9/${PER_KEY} pro=99/99 enterprise=99/99` } });
});
afterAll(() => relay.stop());

const EVENT = { type: "order.created", source: "orders", payload: 1 };
const publish = (client: Client) => client.post("/v1/events", EVENT);

/** Local periods begin with each ten seconds of the clock. What did not come about within one is done again in the next. */
async function withinPeriod<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    const passed = Date.now() % PERIOD_MS;
    if (passed > PERIOD_MS / 2) await sleep(PERIOD_MS - passed);
    const period = Math.floor(Date.now() / PERIOD_MS);
    const done = await act();
    if (Math.floor(Date.now() / PERIOD_MS) === period) return done;
  }
}

test("a key that publishes too fast hears 429 by every route, nobody else does, and it goes on when the period is over", async () => {
  const { tenant, accepted, refused, others } = await withinPeriod(async () => {
    const [tenant, other] = await Promise.all([createTenant(relay.url), createTenant(relay.url)]);
    const created = await tenant.admin.post("/v1/api-keys", { scope: "publish", source_id: tenant.sourceId });
    const second = createClient(relay.url, created.body.key);
    const accepted = [];
    for (let n = 0; n < PER_KEY; n++) accepted.push((await publish(tenant.admin)).status);
    const refused = await publish(tenant.admin);
    const others = await Promise.all([
      tenant.admin.post("/v1/events/raw?type=a.b&source=orders", "x"),
      tenant.admin.post("/v1/events/batch", { events: [EVENT] }),
      publish(second),
      publish(other.admin),
      createClient(relay.url, OPERATOR_TOKEN).call("POST", "/v1/events", EVENT, { "X-Tenant-Id": tenant.id }),
      tenant.admin.get("/v1/events"),
    ]);
    return { tenant, accepted, refused, others };
  });
  expect(accepted).toEqual(Array.from({ length: PER_KEY }, () => 202));
  expect(refused).toMatchObject({
    status: 429,
    body: { type: "urn:hooklane:problem:rate_limited", code: "rate_limited" },
  });
  expect(Object.fromEntries(refused.headers)).toMatchObject({
    "retry-after": "10",
    ratelimit: '"key";r=0;t=10',
    "ratelimit-policy": `"key";q=${PER_KEY};w=10, "tenant";q=9;w=10`,
    "x-request-id": refused.body.request_id,
  });
  expect(others.map(({ status }) => status)).toEqual([429, 429, 202, 202, 202, 200]);
  expect(await listAll(tenant, "/v1/events")).toHaveLength(PER_KEY + 2);

  // The log says whose it was.
  const line = relay
    .printed()
    .split("\n")
    .find((text) => text.includes(refused.body.request_id));
  expect(JSON.parse(line!)).toMatchObject({ status: 429, tenant_id: tenant.id });

  await eventually(async () => (await publish(tenant.admin)).status === 202);
});

test("on one's own machine nothing is limited unless the environment says so", async () => {
  const unlimited = await sharedRelay();
  const tenant = await createTenant(unlimited.url);
  const answers = await Promise.all(Array.from({ length: 30 }, () => publish(tenant.admin)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
});
