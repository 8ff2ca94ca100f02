import { describe, expect, test } from "vitest";
import { reportAttempts } from "../../../src/app/report/attempts.ts";
import { reportFilters } from "../../../src/app/report/filters.ts";
import { reportLatency } from "../../../src/app/report/latency.ts";
import { reportSchemaVersions } from "../../../src/app/report/schema-versions.ts";
import type { Principal } from "../../../src/app/principal.ts";
import type { AskingSubscription } from "../../../src/core/version-rows.ts";

const NOW = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const READER: Principal = { tenantId: "ten_a", scope: "read", sourceId: null };

/** A ledger that has seen everything since some moment, and what it was asked. */
function createLedger(seenSince: number) {
  const asked: unknown[][] = [];
  const answer = async (...args: unknown[]) => {
    asked.push(args);
    return { data: [], groups: 0, completeFrom: seenSince };
  };
  return {
    asked,
    now: () => NOW,
    measureLatencies: answer,
    countAttempts: answer,
    measureFilters: answer,
    readVersions: async (...args: unknown[]) => {
      asked.push(args);
      return { completeFrom: seenSince, registered: [], subscriptions: [], recent: [] };
    },
    readReceived: async () => new Map(),
  };
}

describe.each([
  ["latency", reportLatency],
  ["attempts", reportAttempts],
  ["filters", reportFilters],
  ["schema versions", reportSchemaVersions],
])("the report of %s", (_name, report) => {
  test("is complete when the ledger saw the whole window, an hour unless another is asked for", async () => {
    const ledger = createLedger(NOW - HOUR_MS);
    const window = { from: NOW - HOUR_MS, until: NOW };
    expect(await report(ledger, READER, {})).toMatchObject({ window, complete: true, completeFrom: NOW - HOUR_MS });
    expect(ledger.asked[0]).toEqual(expect.arrayContaining(["ten_a", NOW - HOUR_MS, NOW]));
  });

  test("is not when it saw a part, and says from when on", async () => {
    const found = await report(createLedger(NOW - 1_000), READER, { window: "7d" });
    expect(found).toMatchObject({
      window: { from: NOW - 168 * HOUR_MS, until: NOW },
      complete: false,
      completeFrom: NOW - 1_000,
    });
  });

  test("is for readers, and asks the ledger nothing for others", async () => {
    const ledger = createLedger(0);
    const publisher: Principal = { tenantId: "ten_a", scope: "publish", sourceId: "src_a" };
    await expect(report(ledger, publisher, {})).rejects.toMatchObject({ code: "forbidden" });
    await expect(report(ledger, READER, { from: "1h" })).rejects.toMatchObject({ code: "validation_failed" });
    expect(ledger.asked).toEqual([]);
  });
});

test("of many subscriptions some are listed and all are counted, and what they received is asked for once", async () => {
  const subscriptions = Array.from({ length: 3_000 }, (_, i): AskingSubscription => ({
    id: `sub_${i}`,
    endpointId: `ep_${i}`,
    endpointDisabledAt: null,
    eventTypePattern: "*",
    isFiltered: false,
    entitlementScope: [],
    schemaVersion: 1 + (i % 12),
  }));
  const asked: string[][] = [];
  const report = await reportSchemaVersions(
    {
      now: () => NOW,
      readVersions: async () => ({
        completeFrom: NOW - HOUR_MS,
        registered: [{ name: "a.b", requiredScope: null, schemaVersion: 1, retiredAt: null }],
        subscriptions,
        recent: [],
      }),
      async readReceived(_tenantId, ids) {
        asked.push(ids);
        return new Map(ids.map((id) => [id, { versions: [], isComplete: true }]));
      },
    },
    READER,
    {},
  );
  expect(report.groups).toBe(12);
  expect(report.data.map(({ subscriptionCount }) => subscriptionCount)).toEqual(Array(12).fill(250));
  expect(report.data.map((row) => row.subscriptions.length)).toEqual([...Array(8).fill(250), 0, 0, 0, 0]);
  expect(asked.map((ids) => ids.length)).toEqual([2_000]);
});
