import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createTenant, eventually, expectStatus } from "./support/client.ts";
import { createCrowd } from "./support/crowd.ts";
import { FAULTY_ENTRY, setFaults } from "./support/faults.ts";
import { readLedger } from "./support/kills/ledger.ts";
import { startVisits } from "./support/kills/receiving.ts";
import { judge } from "./support/kills/verdict.ts";
import { nothingOpen } from "./support/many.ts";
import { withReceiver } from "./support/receiver.ts";
import { createStateDir, folderInMemory, freePortToKeep, startRelayProcess } from "./support/relay-process.ts";

/** HOOKLANE_FAN_OUT=10000 npx vitest run --project e2e test/e2e/fan-out.test.ts takes some minutes. */
const ENDPOINTS = Number(process.env["HOOKLANE_FAN_OUT"] ?? 4_000);
/** Parts of the rest that are on record when the relay is killed. Of four thousand endpoints there are three, of ten thousand seven. */
const PARTS_BEFORE = 1;
const TIMEOUT_MS = 10_000;
const PATIENCE_MS = 120_000 + ENDPOINTS * 120;

test(
  "one event to thousands of endpoints, a third of them strict, killed in the middle: none missing, none doubled",
  { timeout: 4 * PATIENCE_MS },
  () =>
    withReceiver(async (receiver) => {
      let seen = 0;
      const tick = () => seen++;
      const { visits } = startVisits(receiver, 1, tick);
      const SECRETS_KEY = `e2e:${randomBytes(32).toString("base64")}`;
      const env = { HOOKLANE_ENTRY: FAULTY_ENTRY, SECRETS_KEY };
      const port = await freePortToKeep();
      const stateDir = createStateDir(folderInMemory());
      const relay = await startRelayProcess({ env, port, stateDir });
      const { url } = relay;
      const tenant = await createTenant(url);
      const crowd = await createCrowd(url, tenant, SECRETS_KEY, ENDPOINTS, {
        url: receiver.url,
        timeout_ms: TIMEOUT_MS,
        // A machine that is busy is no reason to lose one.
        retry_policy: { delays_seconds: [1], max_attempts: 50 },
      });

      // The expansion comes as far as this and no further, so that the kill finds it there however fast the machine is.
      const fault = { statements: "writes", containing: "delete from fan_out", fault: "refused" } as const;
      await setFaults(url, { ledger: { ...fault, after: PARTS_BEFORE } });
      const key = "once";
      const event = { type: "order.created", source: "orders", payload: { key }, idempotency_key: key };
      const startedAt = Date.now();
      const sentAt = tick();
      const accepted = await expectStatus(202, tenant.admin.post("/v1/events", event));
      const acknowledgedAt = tick();
      expect(accepted).toMatchObject({ duplicate: false, delivery_count: ENDPOINTS });
      expect(accepted.deliveries).toHaveLength(100);
      await eventually(async () => relay.printed().includes("expand from hooklane-first-attempts"), PATIENCE_MS);
      const killed = relay.kill();
      const killedAt = [Date.now()];
      await killed;

      const atKill = readLedger(stateDir, tenant.id);
      expect(atKill.events).toEqual([{ id: accepted.id, key, isDispatched: false, deliveryCount: ENDPOINTS }]);
      const strict = crowd.filter(({ isStrict }) => isStrict);
      expect(atKill.deliveries.length).toBeGreaterThan(strict.length + 100);
      expect(atKill.deliveries.length).toBeLessThan(ENDPOINTS);
      const wereOpen = atKill.deliveries.filter(({ status }) => status !== "succeeded");
      expect(wereOpen).not.toEqual([]);

      const again = await startRelayProcess({ env, stateDir, port });
      const repeated = await expectStatus(200, tenant.admin.post("/v1/events", event));
      expect(repeated).toEqual({ ...accepted, duplicate: true });
      await eventually(
        async () => (await expectStatus(200, tenant.admin.get(`/v1/events/${accepted.id}`))).dispatched_at !== null,
        PATIENCE_MS,
      );
      const reached = () => new Set(visits.map(({ deliveryId }) => deliveryId)).size;
      await eventually(async () => reached() === ENDPOINTS, PATIENCE_MS);
      await nothingOpen(tenant, PATIENCE_MS);
      await again.stop();

      const ledger = readLedger(stateDir, tenant.id);
      const owed = crowd.map(({ id, name, isStrict }) => ({ endpointId: id, lane: isStrict ? name : null }));
      const published = [{ key, eventId: accepted.id, sentAt, acknowledgedAt, behind: null, owed }];
      const targets = crowd.map(({ id, name, isStrict }) => ({ id, name, cap: isStrict ? 1 : Infinity }));
      const verdict = judge({ published, visits, ledger, targets, killedAt, timeoutMs: TIMEOUT_MS });
      console.log(
        `fan-out: ${ENDPOINTS} endpoints, ${strict.length} strict; killed with ${atKill.deliveries.length} on record and ` +
          `${atKill.deliveries.length - wereOpen.length} succeeded; ${visits.length} requests; ${verdict.lost} missing, ` +
          `${verdict.doubledRows} doubled; ${verdict.doubled} requests repeated, ${verdict.doubledAfterAnswer} of them after an ` +
          `answer; ${verdict.abandoned} attempts abandoned; ${Date.now() - startedAt} ms`,
      );
      expect(verdict.problems).toEqual([]);
      expect(verdict).toMatchObject({ lost: 0, doubledRows: 0, outOfOrder: 0 });
      expect(ledger.deliveries).toHaveLength(ENDPOINTS);
      expect(ledger.events).toEqual([{ id: accepted.id, key, isDispatched: true, deliveryCount: ENDPOINTS }]);
    }),
);
