import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  expectStatus,
  listAll,
  publish,
  terminalDelivery,
  type Client,
  type TestTenant,
} from "./support/client.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { OPERATOR_TOKEN, startRelayProcess, type RelayProcess } from "./support/relay-process.ts";
import { ROUTES, routesOfApp, type Route } from "./support/routes.ts";

let relay: RelayProcess;
let receiver: Receiver;
/** The tenant that calls, and the one whose ids it has got hold of. */
let caller: TestTenant;
let owner: TestTenant;
let ids: Record<string, string>;
let keys: { read: Client; publish: Client };
let nobody: Client;

beforeAll(async () => {
  [relay, receiver] = await Promise.all([startRelayProcess(), startReceiver()]);
  [caller, owner] = await Promise.all([createTenant(relay.url), createTenant(relay.url)]);
  const endpoint = await createEndpoint(owner, { url: receiver.url });
  const event = await publish(owner);
  const delivery = await terminalDelivery(owner, event.deliveries[0].id);
  const [apiKey] = await listAll(owner, "/v1/api-keys");
  ids = {
    events: event.id,
    deliveries: delivery.id,
    sources: owner.sourceId,
    endpoints: endpoint.id,
    subscriptions: endpoint.subscriptionId,
    "api-keys": apiKey.id,
    tenants: owner.id,
  };
  const createKey = async (body: Record<string, unknown>) =>
    createClient(relay.url, (await expectStatus(201, caller.admin.post("/v1/api-keys", body))).key);
  keys = {
    read: await createKey({ scope: "read" }),
    publish: await createKey({ scope: "publish", source_id: caller.sourceId }),
  };
  nobody = createClient(relay.url, null);
});
afterAll(() => Promise.all([relay.stop(), receiver.close()]));

const nounOf = ({ path }: Route) => path.split("/")[2]!;
const withId = (route: Route, id: string) => route.path.replace(":id", id);
const call = (client: Client, route: Route, path = withId(route, ids[nounOf(route)]!)) =>
  client.call(route.method, path, route.body);
const name = ({ method, path }: Route) => `${method} ${path}`;
const named = (routes: Route[]) => routes.map((route) => ({ name: name(route), route }));

/** Everything that can be read of the other tenant, to show that nothing of it has changed. */
async function readOwner(): Promise<unknown> {
  const nouns = Object.keys(ids).filter((noun) => noun !== "tenants");
  return Promise.all(nouns.map((noun) => listAll(owner, `/v1/${noun}`)));
}

test("the table of routes is the app's", async () => {
  expect(ROUTES.map(name).toSorted()).toEqual((await routesOfApp()).toSorted());
});

describe("another tenant's id in a path is answered as an id of nothing: 404", () => {
  const routes = ROUTES.filter(({ path, access }) => path.includes(":id") && access !== "operator");
  test.each(named(routes))("$name", async ({ route }) => {
    const before = await readOwner();
    const id = ids[nounOf(route)]!;
    const foreign = await call(caller.admin, route);
    const last = id.at(-1) === "0" ? "1" : "0";
    const ofNothing = await call(caller.admin, route, withId(route, id.slice(0, -1) + last));
    const malformed = await call(caller.admin, route, withId(route, "nothing"));
    for (const answer of [foreign, ofNothing, malformed]) {
      expect(answer.status).toBe(404);
      expect(answer.headers.get("Content-Type")).toBe("application/problem+json");
      expect({ ...answer.body, request_id: "" }).toEqual({ ...foreign.body, request_id: "" });
    }
    expect(foreign.body).toMatchObject({ code: "not_found", status: 404 });
    expect(foreign.headers.get("X-Request-Id")).toBe(foreign.body.request_id);
    expect(await readOwner()).toEqual(before);
  });
});

describe("another tenant's id in a body is answered as an id of nothing: 422", () => {
  const bodies: [path: string, field: string, body: (id: string) => unknown, idOf: string][] = [
    ["/v1/subscriptions", "endpoint_id", (id) => ({ endpoint_id: id, event_type_pattern: "*" }), "endpoints"],
    ["/v1/api-keys", "source_id", (id) => ({ scope: "publish", source_id: id }), "sources"],
    ["/v1/api-keys", "tenant_id", (id) => ({ scope: "read", tenant_id: id }), "tenants"],
    ["/v1/events", "source", (id) => ({ type: "t", payload: 1, source: id }), "sources"],
  ];
  test.each(bodies)("POST %s %s", async (path, field, body, noun) => {
    const id = ids[noun]!;
    const foreign = await expectStatus(422, caller.admin.post(path, body(id)));
    const last = id.at(-1) === "0" ? "1" : "0";
    const ofNothing = await expectStatus(422, caller.admin.post(path, body(id.slice(0, -1) + last)));
    expect({ ...foreign, request_id: "" }).toEqual({ ...ofNothing, request_id: "" });
    expect(foreign).toMatchObject({ code: "validation_failed", errors: [{ path: field }] });
  });
});

test("filters by another tenant's ids find nothing, and its cursor shows nothing of it", async () => {
  await publish(owner);
  for (const query of [
    `/v1/deliveries?endpoint_id=${ids["endpoints"]}`,
    `/v1/deliveries?subscription_id=${ids["subscriptions"]}`,
    `/v1/deliveries?event_id=${ids["events"]}`,
    `/v1/events?source_id=${ids["sources"]}`,
    `/v1/subscriptions?endpoint_id=${ids["endpoints"]}`,
  ]) {
    expect(await expectStatus(200, caller.admin.get(query))).toEqual({ data: [], next_cursor: null });
  }
  const { next_cursor } = await expectStatus(200, owner.admin.get("/v1/events?limit=1"));
  const page = await expectStatus(200, caller.admin.get(`/v1/events?cursor=${next_cursor}`));
  const own = new Set((await listAll(caller, "/v1/events")).map(({ id }) => id));
  expect(page.data.filter(({ id }: { id: string }) => !own.has(id))).toEqual([]);
});

test("a tenant's key stays its tenant's, whatever X-Tenant-Id says", async () => {
  const answer = await caller.admin.call("GET", "/v1/sources", undefined, { "X-Tenant-Id": owner.id });
  const text = JSON.stringify(answer.body);
  expect(text).not.toContain(owner.sourceId);
});

describe("without a valid token: 401", () => {
  test.each(named(ROUTES))("$name", async ({ route }) => {
    const wrong = [
      nobody,
      createClient(relay.url, "garbage"),
      createClient(relay.url, `${caller.adminKey.slice(0, -1)}${caller.adminKey.endsWith("A") ? "B" : "A"}`),
      createClient(relay.url, `hlk_9_${"A".repeat(43)}`),
      createClient(relay.url, `${OPERATOR_TOKEN}x`),
    ];
    for (const client of wrong) {
      const { status, body, headers } = await call(client, route);
      expect(status).toBe(401);
      expect(body).toMatchObject({ code: "unauthorized", status: 401 });
      expect(headers.get("WWW-Authenticate")).toBe("Bearer");
    }
  });

  test.each(["Basic abc", "Bearer", "Bearer ", "bearer"])("Authorization: %s", async (authorization) => {
    const { status } = await nobody.call("GET", "/v1/events", undefined, { Authorization: authorization });
    expect(status).toBe(401);
  });
});

describe("with too weak a key: 403", () => {
  const isAllowed = { read: ["read"], publish: ["publish"], admin: ["read", "publish", "admin"] };
  const cases = (["read", "publish", "admin"] as const).flatMap((scope) =>
    ROUTES.filter(({ access }) => !isAllowed[scope].includes(access)).map((route) => ({
      scope,
      name: name(route),
      route,
    })),
  );
  test.each(cases)("$scope: $name", async ({ scope, route }) => {
    const before = await listAll(caller, `/v1/${nounOf(route) === "tenants" ? "sources" : nounOf(route)}`);
    const client = scope === "admin" ? caller.admin : keys[scope];
    const { status, body } = await call(client, route);
    expect({ status, code: body.code }).toEqual({ status: 403, code: "forbidden" });
    expect(await listAll(caller, `/v1/${nounOf(route) === "tenants" ? "sources" : nounOf(route)}`)).toEqual(before);
  });

  test("a publish key publishes for its own source, named or not, and for no other", async () => {
    const event = { type: "t", payload: 1 };
    await expectStatus(202, keys.publish.post("/v1/events", event));
    await expectStatus(202, keys.publish.post("/v1/events", { ...event, source: "orders" }));
    await expectStatus(201, caller.admin.post("/v1/sources", { name: "carts" }));
    await expectStatus(403, keys.publish.post("/v1/events", { ...event, source: "carts" }));
  });

  test("a read key reads", async () => {
    for (const noun of Object.keys(ids).filter((noun) => noun !== "tenants")) {
      await expectStatus(200, keys.read.get(`/v1/${noun}`));
    }
  });
});

describe("an unknown route is 404, token or not", () => {
  const paths = [
    ["GET", "/"],
    ["GET", "/v1"],
    ["GET", "/v1/nothing"],
    ["POST", "/v1/replays"],
    ["GET", "/v1/event-types"],
    ["GET", "/v1/endpoints/ep_1/health"],
    ["GET", "/v1/events/a/b/c"],
    ["DELETE", "/v1/events"],
    ["PUT", "/v1/endpoints/ep_1"],
    ["GET", "/v2/events"],
  ];
  test.each(paths)("%s %s", async (method, path) => {
    const tokens = [null, "garbage", caller.adminKey, OPERATOR_TOKEN];
    for (const client of [...tokens.map((token) => createClient(relay.url, token)), keys.publish]) {
      const { status, body, headers } = await client.call(method!, path!);
      expect(status).toBe(404);
      expect(headers.get("Content-Type")).toBe("application/problem+json");
      expect(body).toMatchObject({
        type: expect.any(String),
        title: "Not found",
        status: 404,
        code: "not_found",
        request_id: headers.get("X-Request-Id"),
      });
    }
  });

  test("GET /health needs no token", async () => {
    expect(await expectStatus(200, nobody.get("/health"))).toEqual({ status: "ok" });
  });
});
