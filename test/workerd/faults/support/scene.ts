import { expect } from "vitest";
import { operatorToken } from "../../support/api.ts";
import { ledger, type World } from "./world.ts";

/** What the runs of a scenario share: a tenant, and unless their acts change it, an endpoint. */
export interface Home {
  tenantId: string;
  key: string;
  endpoint: { id: string; secret: string } | null;
}

export interface Acked {
  name: string;
  id: string;
}

const PAUSE_MS = 5_000;
const MAX_TRIES = 10;

export async function createHome(world: World): Promise<Home> {
  const create = async (path: string, body: object, token: string) =>
    created(await world.finish(world.fetch("POST", path, body, token)));
  const { id: tenantId } = await create("/v1/tenants", { name: "faults", plan: "enterprise" }, operatorToken);
  const { key } = await create("/v1/api-keys", { scope: "admin", tenant_id: tenantId }, operatorToken);
  await create("/v1/sources", { name: "orders" }, key);
  return { tenantId, key, endpoint: null };
}

export async function createEndpoint(world: World, { key }: Home, pattern: string, settings: object) {
  const create = async (path: string, body: object) =>
    created(await world.finish(world.fetch("POST", path, body, key)));
  const endpoint = await create("/v1/endpoints", {
    url: "https://consumer.example/hook",
    retry_policy: { delays_seconds: [5], jitter: 0 },
    ...settings,
  });
  await create("/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: pattern });
  // What an isolate remembers of the tenant is as it is now.
  await world.finish(world.fetch("POST", "/v1/events", { type: "warm", source: "orders", payload: 1 }, key));
  return { id: endpoint.id as string, secret: endpoint.secret as string };
}

function created({ status, body }: { status: number; body: any }): any {
  expect(status, JSON.stringify(body)).toBe(201);
  return body;
}

export type Scene = ReturnType<typeof createScene>;

/** One run: a type of events of its own tells its rows from those of other runs. */
export function createScene(world: World, home: Home, type: string, endpoint: { id: string; secret: string }) {
  const { tenantId, key } = home;
  const endpointId = endpoint.id;
  world.receiver.tenantId = tenantId;
  const acked: Acked[] = [];
  /** Idempotency keys whose publish was tried, acknowledged or not. */
  const keys = new Set<string>();
  const secrets = [key, endpoint.secret];

  const request = (method: string, path: string, body?: unknown, headers = {}) =>
    world.fetch(method, path, body, key, headers);

  /** Again and again, as a client does that got no answer or a 5xx; gives back the last answer. */
  async function persist(method: string, path: string, body?: unknown, headers = {}) {
    for (let n = 1; ; n++) {
      const answer = await request(method, path, body, headers);
      if ((answer.status > 0 && answer.status < 500) || n === MAX_TRIES) return answer;
      await world.sleep(PAUSE_MS);
    }
  }

  const IS_OWN = `(tenant_id, event_id) in (
    select e.tenant_id, e.id from event e where e.tenant_id = ?1 and e.type in (?2, 'hooklane.test')) and endpoint_id = ?3`;
  const own = (sql: string) => ledger.prepare(sql).bind(tenantId, type, endpointId);

  return {
    world,
    ...home,
    endpointId,
    type,
    acked,
    keys,
    secrets,
    request,
    persist,
    eventOf: (name: string, fields: object = {}) => ({ type, source: "orders", payload: { name }, ...fields }),
    /** Publishes until it is acknowledged; without a key once. */
    async publish(name: string, fields: Record<string, unknown> = {}) {
      const body = { type, source: "orders", payload: { name }, idempotency_key: `${type}-${name}`, ...fields };
      const isKeyed = body.idempotency_key !== null;
      const sent = isKeyed ? body : { ...body, idempotency_key: undefined };
      if (isKeyed) keys.add(body.idempotency_key);
      const answer = isKeyed ? await persist("POST", "/v1/events", sent) : await request("POST", "/v1/events", sent);
      if (answer.status === 200 || answer.status === 202) {
        acked.push({ name, id: answer.body.id });
      }
      return answer;
    },
    idOf: (name: string) => `dlv_${acked.find((one) => one.name === name)!.id.slice(4)}${endpointId.slice(3)}`,
    /** All that the ledger knows of this run. */
    async rows() {
      const statements = [
        own(`select * from delivery where ${IS_OWN}`),
        own(`select * from attempt where ${IS_OWN} order by event_id, endpoint_id, replay_no, attempt_number`),
        own("select * from event where tenant_id = ?1 and type = ?2 and ?3 is not null"),
        own(`select * from lane_block where ${IS_OWN}`),
      ];
      // The clock stands still meanwhile.
      const results = await world.calls.track(() => ledger.batch<Record<string, any>>(statements));
      const [deliveries, attempts, events, blocks] = results.map((one) => one.results);
      return { deliveries: deliveries!, attempts: attempts!, events: events!, blocks: blocks! };
    },
    openCount: async () =>
      (await own(`select count(*) as n from delivery where ${IS_OWN} and terminal_at is null`).first<number>("n"))!,
  };
}
