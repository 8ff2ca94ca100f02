import { createTenant } from "../support/relay.ts";
import type { Row, Section } from "../support/section.ts";
import { round } from "../support/table.ts";
import { measure, startCountedRelay } from "./counted-relay.ts";
import { SCENARIOS } from "./scenarios.ts";

const ALONE = 10;
const KINDS = ["unordered, alone", "strict, alone", "fails once", "duplicate"];

/** The same, statement by statement: what `docs/cost.md` says of them. */
export const statements: Section = async () => {
  const counted = await startCountedRelay();
  try {
    const place = { ...counted, tenant: await createTenant(counted.relay, "statements") };
    const rows: Row[] = [];
    for (const { name, prepare } of SCENARIOS.filter(({ name }) => KINDS.includes(name))) {
      const { answer } = await measure(place, await prepare(place, { bytes: 1_000, events: ALONE }));
      for (const { origin, calls, rowsRead, rowsWritten, sql } of answer.statements) {
        if (origin === "watchdog" || origin === "cron") continue;
        const each = (n: number) => round(n / ALONE, 2);
        rows.push({
          kind: name,
          by: origin,
          calls: each(calls),
          read: each(rowsRead),
          written: each(rowsWritten),
          statement: sql.slice(0, 110),
        });
      }
    }
    return rows;
  } finally {
    await counted.stop();
  }
};
