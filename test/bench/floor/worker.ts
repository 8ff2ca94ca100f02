/**
 * The bare runtime under the relay's bindings, with none of its code: what one call of each kind takes, and a pipeline that makes
 * for each event the calls which the relay makes, and nothing else. What the relay does beyond this is its own.
 */
import { DurableObject } from "cloudflare:workers";
import { claim, close, insertEvent, load, seed, type Due } from "./rows.ts";

/** In place of the relay's object of that name. */
export class EndpointLane extends DurableObject<Env> {
  ping(): string {
    return "pong";
  }
}

/** Named by the configuration. */
export class Watchdog extends DurableObject<Env> {}

type Call = (env: Env, n: string) => Promise<unknown>;

/** One of each. `to` names a receiver. */
const calls: Record<string, (request: { body: Uint8Array; to: string }) => Call> = {
  // What a strict lane cannot do without, in its rhythm.
  "fetch-then-claim-close":
    ({ to, body }) =>
    async (env, n) => {
      await (await fetch(to, { method: "POST", body })).arrayBuffer();
      const due = { eventId: `evt_${n}`, token: n };
      await env.DB.batch([...claim(env.DB, due), ...close(env.DB, due)]);
    },
  "d1-insert": () => async (env, n) =>
    env.DB.prepare("insert into retry_policy (tenant_id, id, policy) values ('ten_floor', ?, '{}')").bind(n).run(),
  "d1-select": () => (env) => select(env.DB).all(),
  "d1-batch-of-10-selects": () => (env) => env.DB.batch(Array.from({ length: 10 }, () => select(env.DB))),
  "d1-publish-batch": () => (env, n) => insertEvent(env.DB, { id: `evt_${n}`, ref: `ref/${n}#0`, size: 0 }),
  "d1-claim-close-batch": () => async (env, n) => {
    const due = { eventId: `evt_${n}`, token: n };
    await env.DB.batch([...claim(env.DB, due), ...close(env.DB, due)]);
  },
  "r2-put":
    ({ body }) =>
    (env, n) =>
      env.PAYLOADS.put(`floor/${n}`, body),
  "r2-get": () => async (env, n) => (await env.PAYLOADS.get(`floor/${n}`))?.arrayBuffer(),
  "queue-send": () => (env) => env.OUTCOMES.send({ floor: true }),
  "object-call": () => async (env) => (env.LANES.getByName("floor") as unknown as EndpointLane).ping(),
  fetch:
    ({ to, body }) =>
    async () =>
      (await fetch(to, { method: "POST", body })).arrayBuffer(),
};

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const body = new Uint8Array(await request.arrayBuffer());
    const { searchParams } = url;
    switch (url.pathname) {
      case "/health":
        return new Response("ok");
      case "/seed":
        await seed(env.DB);
        return new Response("ok");
      case "/call": {
        const [count, atOnce] = [Number(searchParams.get("count")), Number(searchParams.get("at"))];
        const call = calls[searchParams.get("what")!]!({ body, to: searchParams.get("to") ?? "" });
        let n = 0;
        const worker = async () => {
          while (n < count) await call(env, `${searchParams.get("run")}-${n++}`);
        };
        await Promise.all(Array.from({ length: atOnce }, worker));
        return new Response("ok");
      }
      default:
        return publish(env, body, searchParams.get("to")!);
    }
  },

  async queue(batch, env, context) {
    // The configuration acknowledges without waiting for this, as it does for the relay.
    if (batch.queue === "hooklane-first-attempts") context.waitUntil(deliver(env, batch.messages));
    batch.ackAll();
  },

  async scheduled() {},
} satisfies ExportedHandler<Env>;

const select = (db: D1Database) => db.prepare("select revision from tenant where id = ?").bind("ten_floor");

/** R2 put, one commit, one message. */
async function publish(env: Env, body: Uint8Array, to: string): Promise<Response> {
  const id = `evt_${crypto.randomUUID().replaceAll("-", "").slice(6)}`;
  const ref = `ten_floor/${id}`;
  await env.PAYLOADS.put(ref, body);
  await insertEvent(env.DB, { id, ref: `${ref}#0`, size: body.length });
  await env.FIRST_ATTEMPTS.send({ eventId: id, to });
  return Response.json({ id, duplicate: false }, { status: 202 });
}

/** One trip that reads, the payloads, one that claims, the requests, one that closes. */
async function deliver(env: Env, messages: readonly Message<any>[]): Promise<void> {
  const due: Due[] = messages.map(({ body }) => ({ eventId: body.eventId, token: crypto.randomUUID() }));
  const rows = await load(env.DB, due);
  const payloads = await Promise.all(
    rows.map(async ({ payload_ref: ref }) => (await env.PAYLOADS.get(ref.split("#")[0]!))!.arrayBuffer()),
  );
  await env.DB.batch(due.flatMap((one) => claim(env.DB, one)));
  await Promise.all(
    rows.map(async ({ id, relayed_at: relayedAt }, n) => {
      const headers = {
        "Content-Type": "application/json",
        "X-Webhook-Event-Id": id,
        "X-Webhook-Relayed-At": new Date(relayedAt).toISOString(),
      };
      const to = (messages.find(({ body }) => body.eventId === id) ?? messages[0]!).body.to;
      const response = await fetch(to, { method: "POST", headers, body: payloads[n]! });
      await response.arrayBuffer();
    }),
  );
  await env.DB.batch(due.flatMap((one) => close(env.DB, one)));
}
