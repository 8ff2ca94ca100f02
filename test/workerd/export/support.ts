import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { firstEventIdAt } from "../../../src/core/ids.ts";
import worker from "../../../src/index.ts";
import type { TestTenant } from "../support/api.ts";
import { createTestContext } from "../support/worker.ts";

export const KINDS = ["events", "deliveries", "attempts"] as const;
export type Kind = (typeof KINDS)[number];

export interface Exported {
  rows: any[];
  /** Null when the answer was cut off. */
  end: { next_cursor: string; has_more: boolean; until: string } | null;
}

export function request(
  tenant: TestTenant,
  path: string,
  bindings = env as Env,
  init: RequestInit = {},
  key = tenant.adminKey,
): Promise<Response> {
  const asked = new Request(`http://relay.test${path}`, { ...init, headers: { Authorization: `Bearer ${key}` } });
  return Promise.resolve(worker.fetch(asked, bindings, createTestContext().context as unknown as ExecutionContext));
}

export async function exportOf(tenant: TestTenant, kind: Kind, query: Record<string, string> = {}): Promise<Exported> {
  const answer = await request(tenant, `/v1/export/${kind}?${new URLSearchParams(query)}`);
  // As bytes: of a type that it does not know for text the runtime warns.
  const text = new TextDecoder().decode(await answer.arrayBuffer());
  if (answer.status !== 200) throw new Error(text);
  return parse(text);
}

export function parse(text: string): Exported {
  const lines = text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  const last = lines.at(-1);
  const isWhole = last !== undefined && "next_cursor" in last;
  return { rows: isWhole ? lines.slice(0, -1) : lines, end: isWhole ? last : null };
}

/** Every answer of an export, one after the other. */
export async function exportAll(tenant: TestTenant, kind: Kind, query: Record<string, string> = {}): Promise<any[]> {
  const rows: any[] = [];
  let cursor: string | undefined;
  for (;;) {
    const { rows: some, end } = await exportOf(tenant, kind, { ...query, ...(cursor && { cursor }) });
    rows.push(...some);
    if (!end!.has_more) return rows;
    cursor = end!.next_cursor;
  }
}

/** The clock of requests goes on by so much; alarms and queues go by the real one. */
export function forward(ms: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });
}

/** Rows of one tenant in bulk: `events` events a second apart, a delivery each and two attempts, all ended. */
export async function fill(
  db: D1Database,
  tenant: TestTenant,
  endpointId: string,
  from: number,
  to: number,
  expiresAt: number,
) {
  const ids = JSON.stringify(Array.from({ length: to - from }, (_, k) => idAt(from + k)));
  const at = `(${BASE} + (${from} + n.key) * 1000)`;
  const bind = (sql: string) => db.prepare(sql).bind(tenant.id, endpointId, ids);
  await db.batch([
    bind(
      `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size,
         payload_is_json, content_type, occurred_at, relayed_at, expires_at)
       select ?1, n.value, (select id from source where tenant_id = ?1), 'old.event', 'r#0',
         x'00', 0, 1, 'application/json', 0, ${at}, ${expiresAt} from json_each(?3) n where ?2 is not null`,
    ),
    bind(
      `insert into delivery (tenant_id, event_id, endpoint_id, subscription_id, status, retry_policy_id, created_at,
         terminal_at, attempt_count, expires_at)
       select ?1, n.value, ?2, (select id from subscription where tenant_id = ?1),
         'succeeded', (select retry_policy_id from endpoint where tenant_id = ?1), ${at}, ${at}, 2, ${expiresAt} from json_each(?3) n`,
    ),
    bind(
      `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at,
         endpoint_revision, signing_secret_ids, outcome_class)
       select ?1, n.value, ?2, 0, m.k, ${at}, 1, '[]', 'success' from json_each(?3) n cross join (select 1 as k union all select 2) m`,
    ),
  ]);
}

export const BASE = 1_000_000_000_000;
export function idAt(n: number): string {
  return firstEventIdAt(BASE + n * 1_000);
}
