import type { FindKind, Sought } from "../../core/find-kinds.ts";
import { eventIdTimeMs } from "../../core/ids.ts";
import type { Event } from "../../core/model.ts";
import type { AttemptKey } from "../../core/row-keys.ts";
import type { Place } from "../../core/two-way.ts";

export interface FindLedger {
  findByIdempotencyKey(tenantId: string, key: string): Promise<{ keys: string[]; isWhole: boolean }>;
  findFailedByPartnerRequest(
    tenantId: string,
    partnerRequestId: string,
    after: AttemptKey | null,
    limit: number,
  ): Promise<{ keys: AttemptKey[]; isWhole: boolean }>;
  findSuccessByPartnerRequest(
    tenantId: string,
    partnerRequestId: string,
    time: { from: number; until: number },
    after: AttemptKey | null,
    limit: number,
  ): Promise<{ keys: AttemptKey[]; rest: AttemptKey | null }>;
  findOpenInLanes(tenantId: string, key: string, limit: number): Promise<{ keys: string[]; isWhole: boolean }>;
  listEvents(
    tenantId: string,
    filters: { orderingKey?: string; createdAfter?: number; createdBefore?: number },
    from: Place<string> | null,
    limit: number,
    now: number,
  ): Promise<{ rows: Event[]; older: Place<string> | null }>;
  now(): number;
}

/** What a text names: all deliveries of an event, all to one endpoint, or one, and perhaps an attempt of it. */
export interface Target {
  kind: FindKind;
  eventId: string;
  endpointId?: string;
  replayNo?: number;
  attemptNumber: number | null;
}

/** One place where was looked. `from` and `until` are null where all that is stored was. */
export interface Searched {
  kind: FindKind;
  among: "all" | "failures" | "successes" | "open" | "events";
  isComplete: boolean;
  from: number | null;
  until: number | null;
}

/** Which of the walks are to be made, all from their beginning the first time, and from where each goes on after that. */
export interface Resume {
  from: number;
  until: number;
  isFirst: boolean;
  failed: AttemptKey | null;
  succeeded: AttemptKey | null;
  ordered: string | null;
}

/** Of each kind at once. */
const MAX_FOUND = 20;

interface Looked {
  targets: Target[];
  searched: Searched[];
  rest?: Partial<Resume>;
}

export async function look(deps: FindLedger, tenantId: string, sought: Sought[], resume: Resume) {
  const parts = await Promise.all(sought.map((one) => lookFor(deps, tenantId, one, resume)));
  const rests = parts.flatMap(({ rest }) => (rest ? [rest] : []));
  const nothing = { failed: null, succeeded: null, ordered: null, isFirst: false };
  return {
    targets: parts.flatMap(({ targets }) => targets),
    searched: parts.flatMap(({ searched }) => searched),
    rest:
      rests.length > 0 ? rests.reduce<Resume>((all, rest) => ({ ...all, ...rest }), { ...resume, ...nothing }) : null,
  };
}

async function lookFor(deps: FindLedger, tenantId: string, sought: Sought, resume: Resume): Promise<Looked> {
  const { kind } = sought;
  if (kind === "partner_request_id") return lookForPartnerRequest(deps, tenantId, sought.text, resume);
  if (kind === "ordering_key") return lookForOrderingKey(deps, tenantId, sought.text, resume);
  // What is found at once is found the first time.
  if (!resume.isFirst) return { targets: [], searched: [] };
  const all = (isComplete: boolean): Searched => ({ kind, among: "all", isComplete, from: null, until: null });
  if (kind === "idempotency_key") {
    const { keys, isWhole } = await deps.findByIdempotencyKey(tenantId, sought.text);
    return { targets: keys.map((eventId) => ({ kind, eventId, attemptNumber: null })), searched: [all(isWhole)] };
  }
  const target: Target =
    kind === "event_id"
      ? { kind, eventId: sought.eventId, attemptNumber: null }
      : kind === "webhook_id"
        ? { kind, eventId: sought.eventId, endpointId: sought.endpointId, attemptNumber: null }
        : { kind, ...sought.ref, attemptNumber: sought.attemptNumber };
  return { targets: [target], searched: [all(true)] };
}

/** Failures by their index, whenever they were; successes by a walk through the attempts for events of a time. */
async function lookForPartnerRequest(
  deps: FindLedger,
  tenantId: string,
  text: string,
  { from, until, isFirst, failed, succeeded }: Resume,
): Promise<Looked> {
  const kind = "partner_request_id";
  const toTarget = ([eventId, endpointId, replayNo, attemptNumber]: AttemptKey): Target => ({
    kind,
    eventId,
    endpointId,
    replayNo,
    attemptNumber,
  });
  const looked: Looked = { targets: [], searched: [] };
  if (isFirst || failed) {
    const { keys, isWhole } = await deps.findFailedByPartnerRequest(tenantId, text, failed, MAX_FOUND);
    looked.targets.push(...keys.map(toTarget));
    looked.searched.push({ kind, among: "failures", isComplete: isWhole, from: null, until: null });
    if (!isWhole) looked.rest = { failed: keys.at(-1)! };
  }
  if (isFirst || succeeded) {
    const time = { from, until };
    const { keys, rest } = await deps.findSuccessByPartnerRequest(tenantId, text, time, succeeded, MAX_FOUND);
    looked.targets.push(...keys.map(toTarget));
    const reached = rest === null ? from : eventIdTimeMs(rest[0]);
    looked.searched.push({ kind, among: "successes", isComplete: rest === null, from: reached, until });
    if (rest) looked.rest = { ...looked.rest, succeeded: rest };
  }
  return looked;
}

/** What is open in lanes of that key, whenever it came; else a walk through the events of a time. */
async function lookForOrderingKey(
  deps: FindLedger,
  tenantId: string,
  text: string,
  { from, until, isFirst, ordered }: Resume,
): Promise<Looked> {
  const kind = "ordering_key";
  const toTarget = (eventId: string): Target => ({ kind, eventId, attemptNumber: null });
  const looked: Looked = { targets: [], searched: [] };
  if (isFirst) {
    const { keys, isWhole } = await deps.findOpenInLanes(tenantId, text, MAX_FOUND);
    // Those of the time are found by the walk.
    const isElsewhere = (eventId: string) => eventIdTimeMs(eventId) < from || eventIdTimeMs(eventId) >= until;
    looked.targets.push(...keys.filter(isElsewhere).map(toTarget));
    looked.searched.push({ kind, among: "open", isComplete: isWhole, from: null, until: null });
  }
  if (isFirst || ordered) {
    const filters = { orderingKey: text, createdAfter: from - 1, createdBefore: until };
    const place: Place<string> | null = ordered === null ? null : { key: ordered, side: "older" };
    const { rows, older } = await deps.listEvents(tenantId, filters, place, MAX_FOUND, deps.now());
    looked.targets.push(...rows.map(({ id }) => toTarget(id)));
    const reached = older === null ? from : eventIdTimeMs(older.key);
    looked.searched.push({ kind, among: "events", isComplete: older === null, from: reached, until });
    if (older) looked.rest = { ordered: older.key };
  }
  return looked;
}
