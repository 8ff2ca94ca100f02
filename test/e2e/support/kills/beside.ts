import { expect } from "vitest";
import {
  createClient,
  createEndpoint,
  createTenant,
  expectStatus,
  listAll,
  publish,
  terminalDelivery,
  type TestTenant,
} from "../client.ts";
import { act, failedOnce, laneWhen, numberOf, publishNumbered, QUICK_RETRY } from "../lanes.ts";
import { startReceiver, type Received, type Receiver } from "../receiver.ts";
import { OPERATOR_TOKEN } from "../relay-process.ts";
import { TIMEOUT_MS } from "./receiving.ts";

/** What stands beside the traffic while its relay is killed: a tenant, its endpoint and its receiver. */
export interface Beside {
  receiver: Receiver;
  tenant: TestTenant;
  endpointId: string;
}

export const RATE = 20;
export const LIMITED_EVENTS = 100;

async function createBeside(url: string, settings: Record<string, unknown>): Promise<Beside> {
  const [receiver, tenant] = await Promise.all([startReceiver(), createTenant(url)]);
  const { id } = await createEndpoint(tenant, { url: receiver.url, timeout_ms: TIMEOUT_MS, ...settings });
  return { receiver, tenant, endpointId: id };
}

/** A lane that was blocked by the second of four events. */
export async function createBlocked(url: string) {
  const settings = { ordering_mode: "strict", on_exhausted: "block" };
  const beside = await createBeside(url, settings);
  const { receiver, tenant, endpointId } = beside;
  receiver.handle((request, response) => void response.writeHead(numberOf(request) === 1 ? 400 : 200).end());
  await publishNumbered(tenant, 4);
  return { ...beside, lane: await laneWhen(tenant, endpointId, "blocked") };
}

/** A backlog that its rate lets through in five seconds, once it may begin: however long all else takes, kills come between. */
export async function createLimited(url: string) {
  const settings = { rate_limit_per_second: RATE, retry_policy: { max_attempts: 1 } };
  const beside = await createBeside(url, settings);
  const { tenant, endpointId } = beside;
  await act(tenant, endpointId, "pause");
  const deliveryIds = await publishNumbered(tenant, LIMITED_EVENTS);
  return { ...beside, deliveryIds, begin: () => act(tenant, endpointId, "resume") };
}

/** A tenant that is suspended with a delivery that has failed once. */
export async function createSuspended(url: string) {
  const beside = await createBeside(url, { retry_policy: { ...QUICK_RETRY, delays_seconds: [2] } });
  const { receiver, tenant } = beside;
  receiver.handle(({ n }, response) => void response.writeHead(n === 1 ? 503 : 200).end());
  const { deliveries } = await publish(tenant);
  await failedOnce(tenant, deliveries[0].id);
  await setStatus(url, tenant, "suspended");
  return { ...beside, deliveryId: deliveries[0].id as string };
}

export async function setStatus(url: string, { id }: TestTenant, status: "active" | "suspended"): Promise<void> {
  const operator = createClient(url, OPERATOR_TOKEN);
  await expectStatus(200, operator.call("PATCH", `/v1/tenants/${id}`, { status }));
}

export async function expectDelivered(tenant: TestTenant, count: number, from: number): Promise<void> {
  for (const id of await publishNumbered(tenant, count, { from })) {
    expect(await terminalDelivery(tenant, id)).toMatchObject({ status: "succeeded" });
  }
}

export const isTest = ({ headers }: Received) => headers["x-webhook-event-type"] === "hooklane.test";

/** A test send that hangs, at an endpoint that delivers in order. */
export async function createTesting(url: string) {
  const settings = { ordering_mode: "strict", on_exhausted: "block" };
  const beside = await createBeside(url, settings);
  const { receiver, tenant, endpointId } = beside;
  receiver.handle((request, response) => void (isTest(request) ? null : response.end()));
  const answered = tenant.admin.post(`/v1/endpoints/${endpointId}/test`).catch(() => null);
  await receiver.waitFor(1);
  await expectDelivered(tenant, 3, 0);
  const [underWay] = await listAll(tenant, "/v1/deliveries?event_type=hooklane.test");
  expect(underWay).toMatchObject({ status: "processing", attempt_count: 1 });
  return { ...beside, answered, deliveryId: underWay.id as string };
}
