import { firstEventIdAt } from "../../../src/core/ids.ts";
import { closeLedger, openLedger, withoutIndexes } from "./ledger-file.ts";
import { copyTenant, insertEndpoints, newId, type FilledTenant } from "./fill-config.ts";
import { insertPast, type Past } from "./fill-past.ts";
import { insertBacklog, insertHistory } from "./fill-events.ts";

export interface FillOptions {
  /** Of a relay that is stopped. */
  stateDir: string;
  /** A tenant that is there, with a source and an endpoint. It gets the first share. */
  tenantId: string;
  /** Tenants in all, that one among them. */
  tenants: number;
  /** Endpoints beside those that are there, in all; each tenant gets one at least. One in five is strict. */
  endpoints: number;
  /** Ended events, each with a delivery that made one attempt. */
  events: number;
  /** Deliveries with a past of all kinds, most of them made more than one attempt: what reports are asked about. */
  past?: number;
  /** Open deliveries: half wait for a retry that is hours ahead, half stand in lanes whose head does. */
  backlog?: number;
  /** Days over which the history is spread, the last of which ended an hour ago, or `daysAgo` ago. */
  days?: number;
  daysAgo?: number;
}

export interface Filled {
  /** Of all kinds, as `past` asks for. */
  past: Past;
  tenants: FilledTenant[];
  seconds: number;
  bytes: number;
}

const CHECKED_TO = 100_000;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/**
 * Gives a ledger a past, in bulk and behind the relay's back: rows as the relay would have left them, but for payloads, which
 * nothing of an ended event reads.
 */
export function fillLedger(options: FillOptions): Filled {
  const { backlog = 0, days = 25, past = 0 } = options;
  const made: Past = { deliveries: 0, attempts: 0 };
  const startedAt = Date.now();
  const db = openLedger(options.stateDir);
  const endAt = startedAt - (options.daysAgo === undefined ? HOUR_MS : options.daysAgo * DAY_MS);
  let n = 0;
  // Sorts by time; distinct by counting.
  db.function("event_id", { deterministic: false }, (timeMs) => {
    return firstEventIdAt(Number(timeMs)).slice(0, 14) + String(n++).padStart(16, "0");
  });
  try {
    const tenants = Array.from({ length: options.tenants }, (_, t) =>
      t === 0 ? copyTenant(db, options.tenantId) : copyTenant(db, options.tenantId, newId("ten")),
    );
    withoutIndexes(db, ["event", "delivery", "attempt"], () => {
      for (const [t, tenant] of tenants.entries()) {
        insertEndpoints(db, tenant, Math.max(1, share(options.endpoints, t, options.tenants)));
        const history = { count: share(options.events, t, options.tenants), from: endAt - days * DAY_MS, until: endAt };
        insertHistory(db, tenant, history);
        insertBacklog(db, tenant, share(backlog, t, options.tenants), startedAt);
        if (past === 0) continue;
        const { deliveries, attempts } = insertPast(db, tenant, share(past, t, options.tenants), startedAt);
        made.deliveries += deliveries;
        made.attempts += attempts;
      }
    });
    // Proved by those that are not large: they are made in the same way.
    const broken = past > CHECKED_TO ? [] : db.prepare("pragma foreign_key_check").all();
    if (broken.length > 0) throw new Error(`${broken.length} rows of the filled ledger refer to nothing.`);
    const [pages, size] = ["page_count", "page_size"].map(
      (name) => db.prepare(`pragma ${name}`).get()![name] as number,
    ) as [number, number];
    return { tenants, past: made, seconds: (Date.now() - startedAt) / 1_000, bytes: pages * size };
  } finally {
    closeLedger(db);
  }
}

/** The `n`th of `of` parts of `total` that differ by one at most. */
function share(total: number, n: number, of: number): number {
  return Math.floor((total * (n + 1)) / of) - Math.floor((total * n) / of);
}
