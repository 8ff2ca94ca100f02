import { createInFlight } from "../../../../src/app/deliver/in-flight.ts";
import type { LoadedDelivery } from "../../../../src/app/deliver/prepare.ts";
import type { AttemptReport } from "../../../../src/app/deliver/report.ts";
import { createLaneState, type LaneDeps, type LaneSettings } from "../../../../src/app/lane/lane-state.ts";
import { pump } from "../../../../src/app/lane/pump.ts";
import { wrapSecret, type SecretsKeys } from "../../../../src/core/secret-box.ts";
import { secretContext } from "../../../../src/core/signing-secrets.ts";
import { POLICY, T0 } from "./report.ts";

type Closing = Parameters<LaneDeps["closeAttempts"]>[0][number];
type Claim = Parameters<LaneDeps["claimHead"]>[0];

const TENANT = "ten_1";
const ENDPOINT = "ep_0123456789abcdef";
const DAY_MS = 86_400_000;
const LEASE_MS = 45_000;
const KEYS: SecretsKeys = [{ id: "test", bytes: new Uint8Array(32) }];
const WRAPPED = await wrapSecret(
  KEYS,
  new Uint8Array(32),
  new Uint8Array(12),
  secretContext(TENANT, ENDPOINT, "sec_1"),
);

/** A row of the ledger in memory, and what a test calls it. */
interface LaneRow {
  name: string;
  delivery: LoadedDelivery & { laneKey: string };
}

export interface SentRequest {
  name: string;
  attempt: number;
  at: number;
}

/** A lane over a ledger in memory, with claims that prove what the real one's prove, and a clock that tests move. */
export function laneScene(settings: Partial<LaneSettings> = {}, over: Partial<LaneDeps> = {}) {
  const clock = { now: T0 };
  const rows: LaneRow[] = [];
  const blocked = new Set<string>();
  const sent: SentRequest[] = [];
  /** Where each load began. */
  const loads: string[] = [];
  const faults: string[] = [];
  /** When the endpoint was given back to the queues. */
  const left: number[] = [];
  /** Doorbells for queues, as `<event id> <attempt>`. */
  const rung: string[] = [];
  const reports: AttemptReport[] = [];
  /** Generations that were woken. */
  const woken: number[] = [];
  const inFlight: string[] = [];
  const waiting: { endsAt: number; end: () => void }[] = [];
  let background = 0;
  let pumps = 0;
  let wakeAt: number | null = null;
  let tokens = 0;

  const isOpen = ({ delivery }: LaneRow) => delivery.status === "pending" || delivery.status === "processing";
  const rowOf = ({ eventId }: { eventId: string }) => rows.find(({ delivery }) => delivery.eventId === eventId)!;
  const headOf = (laneKey: string) => rows.find((row) => row.delivery.laneKey === laneKey && isOpen(row));

  function claim(wanted: Claim, generation: number, now: number): boolean {
    const row = rowOf(wanted);
    const { delivery } = row;
    if (delivery.token === wanted.token) return true;
    const mayClaim =
      delivery.status === "pending" &&
      delivery.attemptCount === wanted.attemptNumber - 1 &&
      delivery.nextAttemptAt! <= now &&
      headOf(delivery.laneKey) === row &&
      !blocked.has(delivery.laneKey) &&
      scene.settings.laneGeneration === generation &&
      scene.settings.route === "lane" &&
      scene.settings.pausedAt === null &&
      scene.settings.disabledAt === null;
    if (!mayClaim) return false;
    Object.assign(delivery, {
      status: "processing",
      token: wanted.token,
      attemptCount: wanted.attemptNumber,
      lockedUntil: now + LEASE_MS,
      nextAttemptAt: now + LEASE_MS,
      lastAttemptAt: now,
      scheduledAt: delivery.scheduledAt ?? now,
    });
    return true;
  }

  function close(closing: Closing): void {
    const { delivery: moved, token } = closing;
    const { delivery } = rowOf(closing);
    if (delivery.token !== token) return;
    const isRetry = moved.status === "pending";
    if (isRetry && delivery.laneKey === ` ${delivery.eventId}`) delivery.laneKey = `~ ${delivery.eventId}`;
    Object.assign(delivery, moved, { token: null, lockedUntil: null }, isRetry ? {} : { nextAttemptAt: null });
    if (moved.status === "dead_letter" && scene.blockOnDead) blocked.add(delivery.laneKey);
  }

  const deps: LaneDeps = {
    now: () => clock.now,
    random: () => 0.5,
    randomBytes: (length) => new Uint8Array(length),
    sleep: (ms) => scene.later(ms),
    within: (_ms, work) => work,
    getPayload: async () => new TextEncoder().encode("{}"),
    secretsKeys: KEYS,
    destinationRules: { allowPrivate: true, ownHosts: [] },
    checkHost: null,
    makeDeliveryKey: () => Promise.reject(new Error("no endpoint asks for one")),
    workerId: "w",
    relayRegion: null,
    inFlight: createInFlight(),
    createToken: () => `token-${++tokens}`,
    async loadLane(_tenant, _endpoint, fromKey, maxKeys, rowsPerKey, _now, beforeKey = "\x7f") {
      loads.push(fromKey);
      const byKey = Map.groupBy(rows.filter(isOpen), ({ delivery }) => delivery.laneKey);
      const keys = [...byKey.keys()]
        .filter((key) => key >= fromKey && key < beforeKey)
        .toSorted(byText)
        .slice(0, maxKeys);
      return structuredClone({
        settings: scene.settings,
        lanes: keys.map((laneKey) => ({
          laneKey,
          blocked: blocked.has(laneKey),
          deliveries: byKey
            .get(laneKey)!
            .slice(0, rowsPerKey)
            .map((row) => row.delivery),
        })),
        hasMore: keys.length === maxKeys,
        region: null,
      });
    },
    countOpen: async (_tenant, _endpoint, limit) => Math.min(limit, rows.filter(isOpen).length),
    async leaveQuarantine(_place, quarantinedAt) {
      if (scene.settings.quarantinedAt !== quarantinedAt) return true;
      left.push(clock.now);
      scene.settings = {
        ...scene.settings,
        quarantinedAt: null,
        route: "queue",
        revision: scene.settings.revision + 1,
      };
      return true;
    },
    quarantine: async () => {},
    loadSettings: async () => structuredClone(scene.settings),
    listInFlight: async (_tenant, _endpoint, laneKeys) =>
      rows.flatMap(({ delivery: { status, laneKey, lockedUntil } }) =>
        status === "processing" && (laneKeys?.includes(laneKey) ?? true)
          ? [{ laneKey, lockedUntil: lockedUntil! }]
          : [],
      ),
    claimHead: async (...args) => claim(...args),
    async giveBack(wanted, now) {
      const { delivery } = rowOf(wanted);
      if (delivery.token !== wanted.token || delivery.status !== "processing") return;
      const attemptCount = wanted.attemptNumber - 1;
      Object.assign(delivery, { status: "pending", token: null, lockedUntil: null, attemptCount, nextAttemptAt: now });
    },
    async closeAndClaim(closing, ...args) {
      close(closing);
      return claim(...args);
    },
    closeAttempts: async (closings) => closings.forEach(close),
    async endHead(ref, end) {
      Object.assign(rowOf(ref).delivery, { ...end, nextAttemptAt: null });
    },
    async send({ headers }) {
      const sentAs = Object.fromEntries(headers);
      const row = rowOf({ eventId: sentAs["X-Webhook-Event-Id"]! });
      const request = { name: row.name, attempt: Number(sentAs["X-Webhook-Attempt"]), at: clock.now };
      sent.push(request);
      inFlight.push(row.name);
      const ofKey = inFlight.filter((name) => scene.row(name).laneKey === row.delivery.laneKey).length;
      scene.mostInFlight.total = Math.max(scene.mostInFlight.total, inFlight.length);
      scene.mostInFlight.ofKey = Math.max(scene.mostInFlight.ofKey, ofKey);
      const { status, tookMs, hangs } = scene.answer(request);
      await scene.later(tookMs);
      inFlight.splice(inFlight.indexOf(row.name), 1);
      if (hangs) return { wire: { kind: "timeout", status: null }, bodySha256: null, headers: [] };
      return { wire: { kind: "response", status, bodyComplete: true }, bodySha256: null, headers: [] };
    },
    loadDeliveries: async () => ({ deliveries: [], region: null }),
    claimDeliveries: async () => new Set(),
    holdDeliveries: async () => {},
    endDeliveries: async () => {},
    listRecentAnswers: async () => [],
    reportsUntil: async () => 0,
    queueReport: async (report) => void reports.push(report),
    ringLater: () => {},
    ringQueue: (calls) => void rung.push(...calls.map((call) => `${call.deliveryId} ${call.attemptNumber}`)),
    wakeLane: ({ generation }) => void woken.push(generation),
    logAttempt: () => {},
    logFault: (what, error) => void faults.push(`${what}: ${String(error)}`),
    pumpAgain: async () => void (await scene.wake()),
    background(work) {
      background++;
      void work.finally(() => background--);
    },
    ...over,
  };

  const scene = {
    clock,
    settings: {
      revision: 1,
      orderingMode: "strict",
      route: "lane",
      concurrencyCap: null,
      ratePerSecond: null,
      maxHeadHoldSeconds: null,
      laneGeneration: 1,
      pausedAt: null,
      disabledAt: null,
      deletedAt: null,
      quarantinedAt: null,
      ...settings,
    } as LaneSettings,
    /** Whether a dead head stops its key. */
    blockOnDead: false,
    blocked,
    deps,
    state: createLaneState({ tenantId: TENANT, endpointId: ENDPOINT, generation: 1 }, T0 - 10_000),
    sent,
    loads,
    faults,
    left,
    rung,
    reports,
    woken,
    /** Pumps so far, whoever asked for them. */
    pumps: () => pumps,
    wakeAt: () => wakeAt,
    /** The most requests that were under way at once, in all and of one key. */
    mostInFlight: { total: 0, ofKey: 0 },
    /** How a request is answered, and after how long. */
    answer: (() => ({ status: 200, tookMs: 0 })) as (request: SentRequest) => {
      status: number;
      tookMs: number;
      hangs?: boolean;
    },
    /** Adds pending rows at the tail of a key. */
    add(laneKey: string, names: string[], fields: Partial<LoadedDelivery> = {}) {
      for (const name of names) rows.push({ name, delivery: pendingRow(laneKey, name, fields) });
    },
    row: (name: string) => rows.find((row) => row.name === name)!.delivery,
    /** Resolves when so much time has passed. */
    async later(ms: number) {
      if (ms > 0) await new Promise<void>((end) => waiting.push({ endsAt: clock.now + ms, end }));
    },
    names: () => sent.map(({ name }) => name),
    /** Rings, as a publish does. */
    async wake(isRung = false) {
      pumps++;
      return (wakeAt = await pump(deps, scene.state, isRung));
    },
    /** Waits until nothing goes on but requests. */
    async settle() {
      do {
        await new Promise((resolve) => setImmediate(resolve));
        // Who waits for a turn at the ledger waits for another's request.
      } while (background > waiting.length + scene.state.pace.waiting.length || scene.state.pumping !== null);
    },
    /** Lets time pass as the object does: pumps when it was asked to, and ends requests when they are answered. */
    async runFor(ms: number) {
      const until = clock.now + ms;
      for (;;) {
        await scene.settle();
        const endsAt = Math.min(...waiting.map((one) => one.endsAt));
        // The object's timers take a millisecond at least.
        const next = Math.min(endsAt, wakeAt === null ? Infinity : Math.max(wakeAt, clock.now + 1));
        if (next > until) break;
        clock.now = next;
        const ended = waiting.filter((one) => one.endsAt <= next);
        for (const one of ended) waiting.splice(waiting.indexOf(one), 1)[0]!.end();
        if (ended.length === 0) await scene.wake();
      }
      clock.now = until;
    },
  };
  return scene;
}

function pendingRow(laneKey: string, name: string, over: Partial<LoadedDelivery>): LaneRow["delivery"] {
  return {
    tenantId: TENANT,
    eventId: `evt_${name}`,
    endpointId: ENDPOINT,
    replayNo: 0,
    status: "pending",
    attemptCount: 0,
    failureCount: 0,
    relayFaultCount: 0,
    nextAttemptAt: T0,
    lastAttemptAt: null,
    lockedUntil: null,
    token: null,
    scheduledAt: null,
    expiresAt: T0 + 30 * DAY_MS,
    holdUntil: null,
    policy: { ...POLICY, delays_seconds: [5] },
    event: {
      id: `evt_${name}`,
      type: "order.created",
      sourceName: "orders",
      schemaVersion: 1,
      orderingKey: null,
      causeEventId: null,
      occurredAt: T0,
      relayedAt: T0,
      contentType: "application/json",
      contentEncoding: null,
      payloadIsJson: true,
      hopCount: 0,
      payloadRef: `r#${name}`,
      payloadErased: false,
      payloadSize: 2,
      // Of `{}`.
      payloadSha256: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    },
    endpoint: {
      url: "https://consumer.example/hook",
      revision: 1,
      payloadFormat: "envelope",
      headers: "{}",
      headerPrefix: null,
      timeoutMs: 15_000,
      pausedAt: null,
      resumedAt: null,
      disabledAt: null,
      deletedAt: null,
      route: "lane",
      laneGeneration: 1,
      disablesAt: null,
      failingSince: null,
    },
    sourceSignature: null,
    secrets: [{ id: "sec_1", wrappedKey: WRAPPED, activeUntil: null }],
    ...over,
    laneKey,
  };
}

const byText = (a: string, b: string) => (a < b ? -1 : Number(a > b));
