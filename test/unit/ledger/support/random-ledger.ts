import type { DatabaseSync } from "node:sqlite";
import type { DeliveryFilters } from "../../../../src/core/delivery-filters.ts";
import { createEventIds } from "../../../../src/core/ids.ts";
import { createRandom } from "../../../support/random.ts";
import { insertRows } from "./d1.ts";

export const NOW = 1_000_000;
export const TENANT = "ten_0000000000000001";
const OTHER = "ten_0000000000000002";
const ids = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${prefix}_${String(n).padStart(16, "0")}`);

const SOURCES = ids("src", 3);
const NAMES = ["orders", "carts", "orders"];
const ENDPOINTS = ids("ep", 3);
const SUBSCRIPTIONS = ids("sub", 5);
const TYPES = ["a", "b"];
const WORKERS = ["v.1.queue", "v.2.lane"];
const REGIONS = ["AMS", "local", null];
const UNSUCCESSFUL = [
  ["failed", "endpoint_disabled", null, null],
  ["failed", "destination_blocked", "blocked_destination", null],
  ["dead_letter", "rejected", "http_4xx", 400],
  ["dead_letter", "exhausted", "http_5xx", 503],
  ["dead_letter", "exhausted", "timeout", 200],
  ["expired", "expired", "http_5xx", 503],
  ["cancelled", "cancelled", null, null],
] as const;

export interface RandomLedger {
  /** Publishes some more events, at times between those that are there and later ones. */
  grow(count: number): void;
  filters(): DeliveryFilters;
  pick<T>(items: readonly T[]): T;
}

/** Two tenants' deliveries, replays and attempts in few milliseconds, so that many share one, in every state there is. */
export function createRandomLedger(sqlite: DatabaseSync, seed: number, count: number): RandomLedger {
  const random = createRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)]!;
  const chance = (of: number) => random() < of;

  for (const table of ["attempt", "delivery", "event", "subscription", "source", "retry_policy"]) {
    sqlite.exec(`delete from ${table}`);
  }
  for (const tenant_id of [TENANT, OTHER]) {
    insertRows(sqlite, "retry_policy", [{ tenant_id, id: "p", policy: "{}" }]);
    const deleted_at = (n: number) => (n === 2 ? 5 : null);
    insertRows(
      sqlite,
      "source",
      SOURCES.map((id, n) => ({ tenant_id, id, name: NAMES[n]!, created_at: 1, deleted_at: deleted_at(n) })),
    );
    insertRows(
      sqlite,
      "subscription",
      SUBSCRIPTIONS.map((id, n) => ({
        tenant_id,
        id,
        endpoint_id: ENDPOINTS[n % 3]!,
        event_type_pattern: "*",
        created_at: 1,
        deleted_at: deleted_at(n),
      })),
    );
  }

  function state() {
    const kind = below(4);
    const is = {
      terminal_at: null,
      lane_key: null,
      final_outcome: null,
      last_error_class: null,
      last_status_code: null,
    };
    if (kind === 0) {
      const status_code = pick([200, 204]);
      return {
        ...is,
        status: "succeeded",
        final_outcome: "delivered",
        terminal_at: below(60),
        last_status_code: status_code,
      };
    }
    if (kind === 1) {
      const [error, code] = pick([
        [null, null],
        ["http_5xx", 503],
        ["network", 200],
        ["timeout", null],
      ] as const);
      return {
        ...is,
        status: pick(["pending", "processing"]),
        lane_key: pick([null, "", "key"]),
        lane_position: below(5),
        last_error_class: error,
        last_status_code: code,
      };
    }
    const [status, final_outcome, last_error_class, last_status_code] = pick(UNSUCCESSFUL);
    return { ...is, status, final_outcome, last_error_class, last_status_code, terminal_at: below(60) };
  }

  function grow(events: number) {
    for (let n = 0; n < events; n++) {
      const tenant_id = chance(0.8) ? TENANT : OTHER;
      const at = 10 + below(12);
      const bytes = Uint8Array.from({ length: 10 }, () => below(256));
      const [id] = createEventIds(at, bytes, 1);
      const expires_at = chance(0.1) ? NOW - 1 : NOW + 1_000;
      insertRows(sqlite, "event", [
        {
          tenant_id,
          id: id!,
          source_id: pick(SOURCES),
          type: pick(TYPES),
          schema_version: 1 + below(2),
          payload_ref: "r#0",
          payload_sha256: new Uint8Array(1),
          payload_size: 0,
          payload_is_json: 1,
          content_type: "c",
          occurred_at: at + below(9) - 4,
          relayed_at: at,
          expires_at,
        },
      ]);
      for (const endpoint_id of ENDPOINTS.filter(() => chance(0.7))) {
        const subscription_id = pick(SUBSCRIPTIONS.filter((_, s) => ENDPOINTS[s % 3] === endpoint_id));
        const replays = chance(0.3) ? 1 + below(2) : 0;
        for (let replay_no = 0; replay_no <= replays; replay_no++) {
          const key = { tenant_id, event_id: id!, endpoint_id, replay_no };
          insertRows(sqlite, "delivery", [
            {
              ...key,
              subscription_id,
              retry_policy_id: "p",
              created_at: replay_no === 0 ? at : at + below(8),
              relay_region: pick(REGIONS),
              schema_version: pick([null, 1, 2]),
              expires_at,
              replayed_as: replay_no < replays ? replay_no + 1 : null,
              ...state(),
            },
          ]);
          for (let attempt_number = 1; attempt_number <= below(3); attempt_number++) {
            insertRows(sqlite, "attempt", [
              {
                ...key,
                attempt_number,
                requested_at: at,
                worker_id: pick(WORKERS),
                endpoint_revision: 1,
                signing_secret_ids: "[]",
              },
            ]);
          }
        }
      }
    }
  }
  grow(count);

  const time = () => 8 + below(20);
  function filters(): DeliveryFilters {
    const all: [name: keyof DeliveryFilters, value: () => any][] = [
      ["endpointId", () => pick(ENDPOINTS)],
      ["subscriptionId", () => pick(SUBSCRIPTIONS)],
      ["source", () => pick([...SOURCES, ...NAMES, "nobody"])],
      [
        "eventId",
        () => sqlite.prepare("select id from event order by id limit 1 offset ?").all(below(count))[0]?.["id"],
      ],
      ["eventType", () => pick(TYPES)],
      ["status", () => pick(["pending", "processing", "succeeded", "failed", "dead_letter", "expired", "cancelled"])],
      ["isOpen", () => true],
      ["errorClass", () => pick(["http_5xx", "timeout", "http_4xx", "network"])],
      ["statusCode", () => pick([200, 400, 503])],
      ["finalOutcome", () => pick(["delivered", "exhausted", "expired", "cancelled"])],
      ["workerId", () => pick(WORKERS)],
      ["relayRegion", () => pick(["AMS", "local"])],
      ["schemaVersion", () => 1 + below(2)],
      ["createdAfter", time],
      ["createdBefore", time],
      ["occurredAfter", time],
      ["occurredBefore", time],
      ["terminalAfter", () => below(60)],
      ["terminalBefore", () => below(60)],
    ];
    const wanted = below(4) + (chance(0.5) ? 0 : 1);
    const chosen = Array.from({ length: wanted }, () => pick(all));
    return Object.fromEntries(chosen.map(([name, value]) => [name, value()]));
  }
  return { grow, filters, pick };
}
