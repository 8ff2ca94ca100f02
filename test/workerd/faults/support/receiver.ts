import { deliveryId, parseDeliveryId } from "../../../../src/core/ids.ts";
import type { Calls } from "./calls.ts";

export interface Request {
  deliveryId: string;
  eventId: string;
  webhookId: string;
  attempt: number;
  /** Whether the source signed it too. */
  isSignedBySource: boolean;
  /** What the event was called in its payload. */
  name: string;
  at: number;
  status: number | null;
  /** Whether the relay, and somebody who lives, got to know the answer. */
  isKnown: boolean;
  /** The attempt whose answer, known when this was made, had ended the delivery. */
  isAfter: Request | null;
  /** The open deliveries of the endpoint as the ledger had them when this came. */
  open: OpenRow[];
}

export interface OpenRow {
  id: string;
  event_id: string;
  endpoint_id: string;
  replay_no: number;
  status: string;
  attempt_count: number;
  lane_key: string | null;
  lane_position: number | null;
}

interface Answer {
  status: number;
  afterMs?: number;
}

/** Where all endpoints lead. It reads the ledger at each request: what is then under way is on record. */
export function createReceiver(calls: Calls, ledger: D1Database) {
  const requests: Request[] = [];
  const receiver = {
    requests,
    /** Whose requests come here. */
    tenantId: "",
    answer: (() => ({ status: 200 })) as (request: Request) => Answer,
    async take(
      { headers, body }: { headers: [string, string][]; body: Uint8Array },
      received: { one: Request | null },
    ): Promise<{ wire: object; bodySha256: null; headers: [] }> {
      const given = new Headers(headers);
      const id = given.get("X-Webhook-Delivery-Id")!;
      const open = await calls.track(() => openOf(ledger, receiver.tenantId, id));
      const one: Request = {
        deliveryId: id,
        eventId: given.get("X-Webhook-Event-Id")!,
        webhookId: given.get("webhook-id")!,
        attempt: Number(given.get("X-Webhook-Attempt")),
        isSignedBySource: given.get("webhook-signature")!.includes(" v1a,"),
        name: /"name":"([^"]*)"/.exec(new TextDecoder().decode(body))?.[1] ?? "?",
        at: Date.now(),
        status: null,
        isKnown: false,
        isAfter: requests.find((past) => past.deliveryId === id && past.isKnown && isFinal(past.status)) ?? null,
        open,
      };
      requests.push(one);
      received.one = one;
      const { status, afterMs = 0 } = receiver.answer(one);
      if (afterMs > 0) await new Promise((resolve) => setTimeout(resolve, afterMs));
      one.status = status;
      return { wire: { kind: "response", status, bodyComplete: true }, bodySha256: null, headers: [] };
    },
  };
  return receiver;
}

const isFinal = (status: number | null) => status !== null && (status < 300 || status === 400 || status === 410);

async function openOf(ledger: D1Database, tenantId: string, deliveryIdText: string): Promise<OpenRow[]> {
  const ref = parseDeliveryId(deliveryIdText);
  if (!ref.ok) throw new Error(deliveryIdText);
  const { results } = await ledger
    .prepare(
      `select event_id, endpoint_id, replay_no, status, attempt_count, lane_key, lane_position from delivery
       where tenant_id = ?1 and endpoint_id = ?2 and terminal_at is null`,
    )
    .bind(tenantId, ref.value.endpointId)
    .all<Omit<OpenRow, "id">>();
  return results.map((row) => ({
    ...row,
    id: deliveryId({ eventId: row.event_id, endpointId: row.endpoint_id, replayNo: row.replay_no }),
  }));
}
