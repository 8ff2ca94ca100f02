import { runBurst, type Burst } from "./support/burst.ts";
import { eventBody, payloadText, startDriver, type Load } from "./support/driver.ts";
import { startFloor } from "./support/floor.ts";
import { startReceiver } from "./support/receiver.ts";
import { createTenant, startRelay, subscribe } from "./support/relay.ts";
import type { Row, Section } from "./support/section.ts";

const CONCURRENCY = 64;

/**
 * The relay beside the bare runtime, which makes for each event the calls that the relay makes to D1, R2 and queues, and the
 * request. By turns, so that a machine that has other things to do meanwhile does to both what it does.
 */
export const bare: Section = async (context) => {
  const rounds = context.quick ? 2 : 4;
  const [receiver, driver] = [await startReceiver(), startDriver()];
  const [empty, whole] = [await startFloor(driver), await startRelay()];
  try {
    const { call, key } = await createTenant(whole, "bare");
    await subscribe({ call }, { url: `${receiver.url}/relay`, type: "bare" });
    const rows: Row[] = [];
    for (const bytes of context.quick ? [1_000] : [1_000, 20_000]) {
      const until = { requests: context.quick ? 128 : 400 };
      const pace = { concurrency: CONCURRENCY };
      const toEmpty = `${empty.url}/publish?to=${encodeURIComponent(`${receiver.url}/bare`)}`;
      const loads: Record<string, Load> = {
        bare: { url: toEmpty, key: "", bodies: [payloadText(bytes)], pace, until },
        relay: { url: `${whole.url}/v1/events`, key, bodies: [eventBody("bare", bytes)], pace, until },
      };
      const bursts: Record<string, Burst[]> = { bare: [], relay: [] };
      for (let round = 0; round <= rounds; round++) {
        for (const [who, load] of Object.entries(loads)) {
          const relay = who === "bare" ? empty : whole;
          const burst = await runBurst({ relay, receiver, driver }, context, `/${who}`, load);
          // The first of each warms up.
          if (round > 0) bursts[who]!.push(burst);
        }
      }
      for (const [who, all] of Object.entries(bursts)) {
        const median = all.toSorted((a, b) => a.deliveredPerSecond - b.deliveredPerSecond)[all.length >> 1]!;
        rows.push({ kb: bytes / 1_000, who, rounds, ...median.row });
      }
      // Of each turn, since those of one are closest in time.
      const ratios = (name: string) =>
        bursts["relay"]!.map(({ row }, n) => (row[name] as number) / (bursts["bare"]![n]!.row[name] as number));
      const shown = (name: string) =>
        ratios(name)
          .map((ratio) => ratio.toFixed(2))
          .join(" ");
      context.note(
        `${bytes / 1_000} KB: by turns the relay delivers ${shown("delivered/s")} of what the bare runtime does, ` +
          `with ${shown("cpu s/1000")} of its CPU`,
      );
    }
    return rows;
  } finally {
    await Promise.all([empty.kill(), whole.kill(), receiver.stop(), driver.stop()]);
  }
};
