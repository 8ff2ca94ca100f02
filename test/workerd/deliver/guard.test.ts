import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Verdict } from "../../../src/app/deliver/check-host.ts";
import type { LaneDeps } from "../../../src/app/lane/lane-state.ts";
import { describeFault } from "../../../src/core/fault.ts";
import { attempt } from "../support/worker.ts";
import { createScene, type Scene } from "../support/scene.ts";
import { createLaneFixture } from "../lane/support.ts";

let requests: Request[] = [];
/** What was logged of the relay's own faults. */
let faults: string[] = [];
beforeEach(() => {
  requests = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (...call) => {
    requests.push(new Request(...call));
    return new Response("ok");
  });
  faults = [];
});
afterEach(() => vi.restoreAllMocks());

const logFault = (_: string, error: unknown) => void faults.push(describeFault(error));

async function write(scene: Scene, column: "url" | "headers", value: string): Promise<void> {
  await scene.db.prepare(`update endpoint set ${column} = ? where id = ?`).bind(value, scene.endpointId).run();
}

async function sentHeaders(scene: Scene): Promise<Headers> {
  const delivery = await scene.publishOne();
  await attempt({ ...scene.deps, logFault }, scene.context, delivery.call(1));
  expect(requests).toHaveLength(1);
  return requests.pop()!.headers;
}

test("an endpoint's headers go out with each attempt, and never into its record or a log", async () => {
  const headers = { "X-Team": "orders", Authorization: "Bearer swordfish" };
  const scene = await createScene({ headers, retry_policy: { delays_seconds: [1], jitter: 0 } });
  const delivery = await scene.publishOne();
  vi.mocked(fetch).mockImplementationOnce(async (...call) => {
    requests.push(new Request(...call));
    return new Response("no", { status: 503 });
  });
  await attempt({ ...scene.deps, logFault }, scene.context, delivery.call(1));
  await attempt({ ...scene.deps, now: () => Date.now() + 1_100 }, scene.context, delivery.call(2));
  for (const request of requests) {
    expect(request.headers.get("x-team")).toBe("orders");
    expect(request.headers.get("authorization")).toBe("Bearer swordfish");
  }
  expect(requests).toHaveLength(2);
  const read = await delivery.read();
  expect(read).toMatchObject({ status: "succeeded", attempt_count: 2 });
  expect(JSON.stringify(read) + faults.join()).not.toContain("swordfish");
});

test("a change of headers holds from the next attempt on", async () => {
  const scene = await createScene({ headers: { "X-Team": "orders" } });
  expect((await sentHeaders(scene)).get("x-team")).toBe("orders");
  await scene.tenant.api.patch(`/v1/endpoints/${scene.endpointId}`, { headers: { "X-Team": "carts" } });
  expect((await sentHeaders(scene)).get("x-team")).toBe("carts");
});

test("a header under the tenant's prefix gives way to the relay's own at the send, and is named in a log", async () => {
  const scene = await createScene({ headers: { "X-Team": "orders" } });
  await scene.db.prepare("update tenant set header_prefix = 'X-Acme-' where id = ?").bind(scene.tenant.id).run();
  await write(
    scene,
    "headers",
    JSON.stringify({ x_acme_team: "forged", "X-Acme-Event-Id": "forged", "X-Team": "orders" }),
  );
  const { id, call } = await scene.publishOne();
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  await attempt(scene.deps, scene.context, call(1));
  const { headers } = requests.at(-1)!;
  expect(headers.get("x-acme-event-id")).toBe(`evt_${id.slice(4, 30)}`);
  expect([headers.get("x_acme_team"), headers.get("x-team")]).toEqual([null, "orders"]);
  const said = JSON.stringify(logged.mock.calls);
  expect(said).toContain("x_acme_team");
  expect(said).not.toContain("forged");
});

test("headers that were changed between an attempt's preparation and its claim send nothing old", async () => {
  const scene = await createScene({ headers: { Authorization: "old" } });
  const delivery = await scene.publishOne();
  const late: typeof scene.deps = {
    ...scene.deps,
    async claimDeliveries(...claim) {
      await scene.tenant.api.patch(`/v1/endpoints/${scene.endpointId}`, { headers: { Authorization: "new" } });
      return scene.deps.claimDeliveries(...claim);
    },
  };
  await attempt(late, scene.context, delivery.call(1));
  expect(requests).toHaveLength(0);
  await attempt({ ...scene.deps, logFault }, scene.context, delivery.call(1));
  expect(requests.map(({ headers }) => headers.get("authorization"))).toEqual(["new"]);
});

test("what could not have been set is left out at the send, and named in a log without its value", async () => {
  const scene = await createScene();
  const forged = {
    "X-Team": "orders",
    Host: "swordfish.example",
    "webhook-id": "msg_swordfish",
    "X-Webhook-Hop": "0",
    content_type: "swordfish/x",
    "X-Split": "a\r\nX-Injected: swordfish",
    "X Y": "swordfish",
    "X-Long": "swordfish".repeat(200),
  };
  await write(scene, "headers", JSON.stringify(forged));
  const sent = await sentHeaders(scene);
  expect(sent.get("x-team")).toBe("orders");
  expect(JSON.stringify([...sent])).not.toContain("swordfish");
  expect(sent.get("x-webhook-hop")).toBe("1");
  for (const name of Object.keys(forged).slice(1)) expect(faults.join()).toContain(name);
  expect(faults.join()).not.toContain("swordfish");
});

test.each([
  ["moved from another name", (wrapped: string) => JSON.stringify({ "X-Api-Key": { wrapped } })],
  ["altered", () => JSON.stringify({ Authorization: { wrapped: "AQRkZWFkAAAA" } })],
  ["no base64", () => JSON.stringify({ Authorization: { wrapped: "%" } })],
  ["no object", () => "[]"],
  ["no JSON", () => "{"],
])(
  "a hidden value that is %s is a fault of ours: nothing is sent without it, and nothing is spent",
  async (_, forge) => {
    const scene = await createScene({ headers: { Authorization: "Bearer swordfish" } });
    const stored = await scene.db
      .prepare("select headers from endpoint where id = ?")
      .bind(scene.endpointId)
      .first("headers");
    await write(scene, "headers", forge(JSON.parse(stored as string).Authorization.wrapped));
    const delivery = await scene.publishOne();
    await attempt({ ...scene.deps, logFault }, scene.context, delivery.call(1));
    expect(requests).toHaveLength(0);
    await write(scene, "headers", stored as string);
    expect(await delivery.read()).toMatchObject({ status: "pending", attempt_count: 0, attempts: [] });
    await attempt({ ...scene.deps, logFault }, scene.context, delivery.call(1));
    expect(requests.map(({ headers }) => headers.get("authorization"))).toEqual(["Bearer swordfish"]);
  },
);

/** Runs two events through a strict lane whose ledger was written to in between, and gives back what would have been sent. */
async function runLane(
  endpoint: Record<string, unknown>,
  over: Partial<LaneDeps>,
  meddle: (scene: Scene) => Promise<void> = async () => {},
) {
  const fixture = await createLaneFixture(endpoint);
  const ids = await fixture.publishAll(["/1", "/2"]);
  await meddle(fixture);
  const sent: Parameters<LaneDeps["send"]>[0][] = [];
  const lane = fixture.createLane("a", 0, (deps) => ({
    ...deps,
    ...over,
    async send(request) {
      sent.push(request);
      return deps.send(request);
    },
  }));
  await lane.run();
  const read = async (id: string) => (await fixture.tenant.api.get(`/v1/deliveries/${id}`)).body;
  return { fixture, lane, sent, deliveries: await Promise.all(ids.map(read)) };
}

test("headers go out through a lane too, and what could not have been set is left out there as well", async () => {
  const { sent, fixture } = await runLane({ headers: { Authorization: "Bearer swordfish" } }, {}, async (scene) => {
    await scene.db
      .prepare("update endpoint set headers = json_set(headers, '$.Host', 'a', '$.X-Team', 'orders') where id = ?")
      .bind(scene.endpointId)
      .run();
  });
  const own = ({ headers }: (typeof sent)[number]) => {
    const all = new Headers(headers);
    return [all.get("authorization"), all.get("x-team"), all.get("host")];
  };
  expect(sent.map(own)).toEqual(Array.from({ length: 2 }, () => ["Bearer swordfish", "orders", null]));
  expect(await fixture.openCount()).toBe(0);
});

const HOSTILE = [
  "http://169.254.169.254/latest/meta-data/",
  "https://127.0.0.1/",
  "https://[::1]/",
  "https://0x7f.1/",
  "https://localhost/",
  "https://metadata.google.internal/",
  "https://consumer/",
  "https://user@consumer.example/",
  "https://consumer.example:6379/",
  "https://relay.example/",
  "http://consumer.example/",
  "gopher://consumer.example/",
  "https://consumer.example/\r\nHost: x",
  "",
];
const PUBLIC_ONLY = { allowPrivate: false, ownHosts: ["relay.example"] };
const BLOCKED = {
  status: "failed",
  final_outcome: "destination_blocked",
  last_error_class: "blocked_destination",
  attempt_count: 0,
  attempts: [],
};

test.each(HOSTILE)("%j in the ledger ends deliveries of queues without an attempt", async (url) => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  await write(scene, "url", url);
  await attempt({ ...scene.deps, destinationRules: PUBLIC_ONLY }, scene.context, delivery.call(1));
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject(BLOCKED);
});

test.each(HOSTILE)("%j in the ledger ends deliveries of lanes without an attempt", async (url) => {
  const { sent, deliveries } = await runLane({}, { destinationRules: PUBLIC_ONLY }, (scene) =>
    write(scene, "url", url),
  );
  expect(sent).toEqual([]);
  for (const delivery of deliveries) expect(delivery).toMatchObject(BLOCKED);
});

const answering = (verdict: Verdict) => ({ checkHost: async () => verdict });

test("a name that leads to a private address ends the delivery without an attempt", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const asked: string[] = [];
  const checkHost = async (hostname: string) => {
    asked.push(hostname);
    return "blocked" as const;
  };
  await attempt({ ...scene.deps, checkHost }, scene.context, delivery.call(1));
  expect(asked).toEqual(["consumer.example"]);
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject(BLOCKED);
  const { sent, deliveries } = await runLane({}, answering("blocked"));
  expect(sent).toEqual([]);
  for (const one of deliveries) expect(one).toMatchObject(BLOCKED);
});

test("a resolver that is away spends nothing: no attempt, no request, and it goes on when the resolver is back", async () => {
  const scene = await createScene();
  const delivery = await scene.publishOne();
  const rung: number[] = [];
  const away: typeof scene.deps = {
    ...scene.deps,
    checkHost: () =>
      Promise.reject(new Error("the addresses of consumer.example are not known: no answer within 3000 ms")),
    ringLater: (_, delayMs) => void rung.push(delayMs),
    logFault,
  };
  await attempt(away, scene.context, delivery.call(1));
  expect(requests).toHaveLength(0);
  expect(rung).toEqual([1_000]);
  expect(await delivery.read()).toMatchObject({ status: "pending", attempt_count: 0, attempts: [] });
  expect(faults.join()).toContain("the addresses of consumer.example are not known");
  await attempt({ ...scene.deps, ...answering("public") }, scene.context, delivery.call(1));
  expect(await delivery.read()).toMatchObject({ status: "succeeded", attempt_count: 1 });

  let isAway = true;
  const checkHost = async (): Promise<Verdict> => {
    if (isAway) throw new Error("away");
    return "public";
  };
  const { fixture, lane, sent, deliveries } = await runLane({}, { checkHost });
  expect([sent.length, deliveries.map(({ attempt_count }) => attempt_count)]).toEqual([0, [0, 0]]);
  isAway = false;
  fixture.forward(1_000);
  await lane.run();
  expect(sent).toHaveLength(2);
  expect(await fixture.openCount()).toBe(0);
});

test("a name that leads nowhere is the endpoint's fault: an attempt as unreachable by DNS, without a request", async () => {
  const scene = await createScene({ retry_policy: { max_attempts: 1 } });
  const delivery = await scene.publishOne();
  await attempt({ ...scene.deps, ...answering("unresolvable") }, scene.context, delivery.call(1));
  expect(requests).toHaveLength(0);
  expect(await delivery.read()).toMatchObject({
    status: "dead_letter",
    final_outcome: "exhausted",
    attempts: [{ outcome_class: "unreachable", error_class: "dns", status_code: null }],
  });
});
