import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  expectStatus,
  listAll,
  publish,
  terminalDelivery,
  type Answer,
  type Client,
  type TestTenant,
} from "./support/client.ts";
import { startReceiver, type Receiver } from "./support/receiver.ts";
import { OPERATOR_TOKEN, sharedRelay } from "./support/relay-process.ts";
import { DOCUMENT, ofNothing, STEPS, type IdField, type Ids, type Step } from "./support/walk.ts";

/** Everything a tenant can have, and keys of every scope. */
interface Scene {
  tenant: TestTenant;
  ids: Ids;
  keys: Record<string, Client>;
}

const relay = await sharedRelay();
let receiver: Receiver;
/** The tenant that calls, and the one whose ids it has got hold of. */
let caller: Scene;
let owner: Scene;
let nobody: Client;
let operator: Client;

async function createScene(): Promise<Scene> {
  const tenant = await createTenant(relay.url);
  const endpoint = await createEndpoint(tenant, { url: receiver.url });
  const event = await publish(tenant);
  const delivery = await terminalDelivery(tenant, event.deliveries[0].id);
  const createKey = (body: Record<string, unknown>) => expectStatus(201, tenant.admin.post("/v1/api-keys", body));
  const [read, published] = [
    await createKey({ scope: "read" }),
    await createKey({ scope: "publish", source_id: tenant.sourceId }),
  ];
  const name = `walk.${tenant.id}0`;
  const replay = await expectStatus(
    201,
    tenant.admin.post("/v1/replays", { filter: { endpoint_id: endpoint.id }, dry_run: true }),
  );
  const eventType = await expectStatus(201, tenant.admin.post("/v1/event-types", { name }));
  return {
    tenant,
    ids: {
      events: event.id,
      deliveries: delivery.id,
      replays: replay.id,
      sources: tenant.sourceId,
      endpoints: endpoint.id,
      subscriptions: endpoint.subscriptionId,
      "api-keys": published.id,
      "event-types": eventType.name,
      tenants: tenant.id,
    },
    keys: {
      admin: tenant.admin,
      read: createClient(relay.url, read.key),
      publish: createClient(relay.url, published.key),
    },
  };
}

beforeAll(async () => {
  receiver = await startReceiver();
  [caller, owner] = await Promise.all([createScene(), createScene()]);
  nobody = createClient(relay.url, null);
  operator = createClient(relay.url, OPERATOR_TOKEN);
});
afterAll(() => receiver.close());

const named = (steps: Step[]) => steps.map((step) => ({ name: step.name, step }));
const isOfTenant = ({ scopes }: Step) => scopes.length > 0;
const withoutRequestId = (body: unknown) => JSON.parse(JSON.stringify(body, (k, v) => (k === "request_id" ? "" : v)));

/** Everything that can be read of a tenant, to show that nothing of it has changed: refusals may be asked for side by side. */
async function readAll({ tenant, ids }: Scene): Promise<unknown> {
  const nouns = Object.keys(ids).filter((noun) => noun !== "tenants");
  return Promise.all(nouns.map((noun) => listAll(tenant, `/v1/${noun}`)));
}

test("the relay serves the document the walk goes by", async () => {
  expect(await expectStatus(200, nobody.get("/openapi.json"))).toEqual(JSON.parse(JSON.stringify(DOCUMENT)));
});

describe("another tenant's id in a path is answered as an id of nothing: 404", () => {
  const steps = STEPS.filter((step) => step.path.includes("{") && isOfTenant(step));
  test.concurrent.each(named(steps))("$name", async ({ step }) => {
    const before = await readAll(owner);
    const id = owner.ids[step.noun]!;
    const answerFor = (id: string) => step.call(caller.keys["admin"]!, { ...caller.ids, [step.noun]: id });
    const foreign = await answerFor(id);
    for (const answer of [foreign, await answerFor(ofNothing(id)), await answerFor("nothing")]) {
      expect(answer.status).toBe(404);
      expect(withoutRequestId(answer.body)).toEqual(withoutRequestId(foreign.body));
    }
    expect(foreign.body).toMatchObject({ code: "not_found" });
    expect(await readAll(owner)).toEqual(before);
  });
});

describe("another tenant's id in a body is answered as an id of nothing: 422", () => {
  /** A lane knows its heads only: what is none of them is 409, whatever it is. */
  const NOT_A_HEAD = "POST /v1/endpoints/{id}/lane/skip";
  const fieldsOf = (step: Step): IdField[] => (step.method === "GET" ? [] : [...step.body, ...step.query]);
  const cases = STEPS.filter(isOfTenant).flatMap((step) =>
    fieldsOf(step).map((field) => ({ name: `${step.name} ${field.path.join(".")}`, step, field })),
  );
  /** Of one event of a batch the refusal is its own. */
  const pathOf = ({ path }: IdField) => path.slice(path.indexOf("[]") + 1).join(".");
  const refusalIn = ({ status, body }: Answer) =>
    body.results ? { status: body.results[0].status, body: body.results[0].error } : { status, body };

  test.concurrent.each(cases)("$name", async ({ step, field }) => {
    const before = [await readAll(owner), await readAll(caller)];
    const id = owner.ids[field.noun]!;
    const answerFor = async (id: string) =>
      refusalIn(await step.call(caller.keys["admin"]!, caller.ids, { field, id }));
    const foreign = await answerFor(id);
    const nothing = await answerFor(ofNothing(id));
    expect(withoutRequestId(foreign)).toEqual(withoutRequestId(nothing));
    if (step.name === NOT_A_HEAD) expect(foreign.body).toMatchObject({ status: 409, code: "not_blocked" });
    else
      expect(foreign.body).toMatchObject({ status: 422, code: "validation_failed", errors: [{ path: pathOf(field) }] });
    expect([await readAll(owner), await readAll(caller)]).toEqual(before);
  });
});

describe("another tenant's id in a filter finds what an id of nothing finds: nothing", () => {
  const cases = STEPS.filter((step) => isOfTenant(step) && step.method === "GET").flatMap((step) =>
    step.query.map((field) => ({ name: `${step.name}?${field.name}`, step, field })),
  );
  test.concurrent.each(cases)("$name", async ({ step, field }) => {
    const id = owner.ids[field.noun]!;
    for (const unknown of [id, ofNothing(id)]) {
      const answer = step.call(caller.keys["admin"]!, caller.ids, { field, id: unknown });
      expect(await expectStatus(200, answer)).toMatchObject({ data: [], next_cursor: null });
    }
    const own = step.call(caller.keys["admin"]!, caller.ids, { field, id: caller.ids[field.noun]! });
    expect((await expectStatus(200, own)).data).not.toEqual([]);
  });

  test("another tenant's cursor shows nothing of it", async () => {
    await publish(owner.tenant);
    const { next_cursor } = await expectStatus(200, owner.tenant.admin.get("/v1/events?limit=1"));
    const page = await expectStatus(200, caller.tenant.admin.get(`/v1/events?cursor=${next_cursor}`));
    const own = new Set((await listAll(caller.tenant, "/v1/events")).map(({ id }) => id));
    expect(page.data.filter(({ id }: { id: string }) => !own.has(id))).toEqual([]);
  });
});

test("a tenant's key stays its tenant's, whatever X-Tenant-Id says", async () => {
  const headers = { "X-Tenant-Id": owner.tenant.id };
  const answer = await caller.tenant.admin.call("GET", "/v1/sources", undefined, headers);
  expect(JSON.stringify(answer.body)).not.toContain(owner.tenant.sourceId);
});

describe("without a valid token: 401", () => {
  test.concurrent.each(named(STEPS))("$name", async ({ step }) => {
    const { adminKey } = caller.tenant;
    const wrong = [
      nobody,
      createClient(relay.url, "garbage"),
      createClient(relay.url, `${adminKey.slice(0, -1)}${adminKey.endsWith("A") ? "B" : "A"}`),
      createClient(relay.url, `hlk_9_${"A".repeat(43)}`),
      createClient(relay.url, `${OPERATOR_TOKEN}x`),
    ];
    for (const client of wrong) {
      for (const ids of [caller.ids, owner.ids]) {
        const { status, body, headers } = await step.call(client, ids);
        expect({ status, code: body.code }).toEqual({ status: 401, code: "unauthorized" });
        expect(headers.get("WWW-Authenticate")).toBe("Bearer");
      }
    }
  });

  test.each(["Basic abc", "Bearer", "Bearer ", "bearer"])("Authorization: %s", async (authorization) => {
    const { status } = await nobody.call("GET", "/v1/events", undefined, { Authorization: authorization });
    expect(status).toBe(401);
  });
});

describe("with too weak a key: 403", () => {
  const cases = STEPS.flatMap((step) =>
    ["read", "publish", "admin"]
      .filter((scope) => !step.scopes.includes(scope))
      .map((scope) => ({ name: `${scope}: ${step.name}`, scope, step })),
  );
  test.concurrent.each(cases)("$name", async ({ scope, step }) => {
    const before = await readAll(caller);
    for (const ids of [caller.ids, owner.ids]) {
      const { status, body } = await step.call(caller.keys[scope]!, ids);
      expect({ status, code: body.code }).toEqual({ status: 403, code: "forbidden" });
    }
    expect(await readAll(caller)).toEqual(before);
  });

  test("a publish key publishes for its own source, named or not, and for no other", async () => {
    const event = { type: "t", payload: 1 };
    const { publish } = caller.keys;
    await expectStatus(202, publish!.post("/v1/events", event));
    await expectStatus(202, publish!.post("/v1/events", { ...event, source: "orders" }));
    await expectStatus(201, caller.tenant.admin.post("/v1/sources", { name: "carts" }));
    await expectStatus(403, publish!.post("/v1/events", { ...event, source: "carts" }));
  });
});

describe("the operator acts for the tenant it names, and for none it does not", () => {
  test.concurrent.each(named(STEPS.filter(isOfTenant)))("$name", async ({ step }) => {
    expect(await expectStatus(422, step.call(operator, caller.ids))).toMatchObject({
      code: "validation_failed",
      errors: [{ path: "X-Tenant-Id" }],
    });
    const headers = { "X-Tenant-Id": ofNothing(caller.tenant.id) };
    expect(await expectStatus(404, step.call(operator, caller.ids, undefined, headers))).toMatchObject({
      code: "not_found",
    });
  });
});

describe("whom the document names may call", () => {
  // What deletes comes last, what belongs to another thing before that thing.
  const rank: Record<string, number> = { endpoints: 2, sources: 2, tenants: 3 };
  const order = ({ method, noun }: Step) => (method === "DELETE" ? (rank[noun] ?? 1) : 0);
  const steps = STEPS.toSorted((a, b) => order(a) - order(b));
  test.each(named(steps))("$name", async ({ step }) => {
    const headers = { "X-Tenant-Id": caller.tenant.id };
    const callers = step.method === "DELETE" || step.scopes.length === 0 ? [] : step.scopes;
    for (const scope of callers) {
      const { status } = await step.call(caller.keys[scope]!, caller.ids);
      expect([401, 403, 404]).not.toContain(status);
    }
    const { status } = await step.call(operator, caller.ids, undefined, step.scopes.length > 0 ? headers : {});
    expect([401, 403, 404]).not.toContain(status);
  });
});
