import { z } from "zod";
import { HOUR_MS, reportWindow, type Report } from "../../core/report.ts";
import { reportVersions } from "../../core/version-report.ts";
import type {
  AskingSubscription,
  KnownVersion,
  RecentEvents,
  SubscriptionVersion,
  VersionRow,
} from "../../core/version-rows.ts";
import { SchemaVersion } from "../field-schemas.ts";
import { parseInput } from "../parse-input.ts";
import { requireReader, type Principal } from "../principal.ts";
import type { Runtime } from "../runtime.ts";
import { ReportInput } from "./report-input.ts";

interface ReceivedVersion {
  type: string;
  schemaVersion: number;
  deliveries: number;
  lastAt: number;
}

export interface ReportSchemaVersionsDeps extends Pick<Runtime, "now"> {
  /** As of one moment. Subscriptions oldest first; recent are all events relayed since `completeFrom`. */
  readVersions(
    tenantId: string,
    eventType: string | null,
    from: number,
    now: number,
  ): Promise<{
    completeFrom: number;
    registered: KnownVersion[];
    subscriptions: AskingSubscription[];
    recent: RecentEvents[];
  }>;
  /** Of each of these subscriptions, by id. */
  readReceived(
    tenantId: string,
    subscriptionIds: string[],
    from: number,
    now: number,
  ): Promise<Map<string, { versions: ReceivedVersion[]; isComplete: boolean }>>;
}

export interface ReportedSubscription extends SubscriptionVersion {
  /** What it received of the type in the window, of any type where that is not known; newest first. */
  received: ReceivedVersion[];
  /** Whether all that it got in the window was looked at. */
  receivedComplete: boolean;
}

export interface ReportedVersion extends Omit<VersionRow, "subscriptions"> {
  /** How many ask for it. */
  subscriptionCount: number;
  /** The oldest of them. */
  subscriptions: ReportedSubscription[];
}

const MAX_ROWS = 1_000;
/** Of one row, and of all together. */
const MAX_LISTED_EACH = 250;
const MAX_LISTED = 2_000;

export const SchemaVersionsInput = ReportInput.extend({
  event_type: z.string().min(1).max(128).optional(),
  schema_version: z
    .string()
    .regex(/^[1-9]\d{0,9}$/, "must be a whole number from 1")
    .transform(Number)
    .pipe(SchemaVersion)
    .meta({ jsonSchema: { type: "integer", minimum: 1, maximum: 2_147_483_647 } })
    .optional(),
});

/** Which versions of which types there are, which subscriptions get them today, and what those received lately. */
export async function reportSchemaVersions(
  deps: ReportSchemaVersionsDeps,
  principal: Principal,
  query: unknown,
): Promise<Report<ReportedVersion> & { groups: number; types: number; typesLookedAt: number }> {
  requireReader(principal);
  const { window: lengthMs = HOUR_MS, ...asked } = parseInput(SchemaVersionsInput, query);
  const { tenantId } = principal;
  const now = deps.now();
  const window = reportWindow(now, lengthMs);
  const eventType = asked.event_type ?? null;
  const known = await deps.readVersions(tenantId, eventType, window.from, now);
  const { rows, types, typesLookedAt } = reportVersions(known.registered, known.recent, known.subscriptions, {
    eventType,
    schemaVersion: asked.schema_version ?? null,
  });
  const listed = listSubscriptions(rows.slice(0, MAX_ROWS));
  const ids = new Set(listed.flatMap(({ subscriptions }) => subscriptions.map(({ subscription }) => subscription.id)));
  const received = ids.size > 0 ? await deps.readReceived(tenantId, [...ids], window.from, now) : new Map();
  const data = listed.map((row) => ({
    ...row,
    subscriptions: row.subscriptions.map((of) => ({
      ...of,
      ...ofType(received.get(of.subscription.id), row.eventType),
    })),
  }));
  const { completeFrom } = known;
  return {
    data,
    groups: rows.length,
    types,
    typesLookedAt,
    window,
    completeFrom,
    complete: completeFrom === window.from,
  };
}

function listSubscriptions(rows: VersionRow[]) {
  let left = MAX_LISTED;
  return rows.map((row) => {
    const subscriptions = row.subscriptions.slice(0, Math.min(MAX_LISTED_EACH, left));
    left -= subscriptions.length;
    return { ...row, subscriptions, subscriptionCount: row.subscriptions.length };
  });
}

function ofType(
  received: { versions: ReceivedVersion[]; isComplete: boolean },
  eventType: string | null,
): Pick<ReportedSubscription, "received" | "receivedComplete"> {
  return {
    received: received.versions
      .filter(({ type }) => eventType === null || type === eventType)
      .toSorted((a, b) => b.lastAt - a.lastAt || b.schemaVersion - a.schemaVersion),
    receivedComplete: received.isComplete,
  };
}
