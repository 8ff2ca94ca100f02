import { expect, test } from "vitest";
import { MAX_OPEN } from "../../src/core/replay.ts";
import { createEndpoint, createTenant, eventually, expectStatus, type TestTenant } from "./support/client.ts";
import { LEASE_PATIENCE_MS } from "./support/eventually.ts";
import { readLedger } from "./support/kills/ledger.ts";
import { nothingOpen, publishMany } from "./support/many.ts";
import { withReceiver } from "./support/receiver.ts";
import { createStateDir, folderInMemory, freePortToKeep, startRelayProcess } from "./support/relay-process.ts";

/**
 * Each of them is owed to two endpoints. HOOKLANE_REPLAYS=50000 for a hundred thousand dead letters, in minutes. Whatever the number, half a
 * minute of it is what the kill left: leases, and doorbells that are missed.
 */
const EVENTS = Number(process.env["HOOKLANE_REPLAYS"] ?? 1_000);
/** Of these the ordered endpoint has dead letters; what follows was refused while it was disabled. */
const DIED = 100;
const PATIENCE_MS = LEASE_PATIENCE_MS + EVENTS * 120;

const act = ({ admin }: TestTenant, id: string, verb: string) =>
  expectStatus(200, admin.post(`/v1/endpoints/${id}/${verb}`));

test(
  "thousands of dead letters are replayed and the relay is killed in the middle: none missing, none doubled, order kept",
  { timeout: 4 * PATIENCE_MS },
  () =>
    withReceiver(async (receiver) => {
      const port = await freePortToKeep();
      const stateDir = createStateDir(folderInMemory());
      const relay = await startRelayProcess({ port, stateDir });
      const tenant = await createTenant(relay.url);
      // So long that no machine that stands still has a request made again.
      const settings = { timeout_ms: 10_000, retry_policy: { delays_seconds: [1], max_attempts: 50 } };
      const strict = await createEndpoint(tenant, {
        ...settings,
        url: `${receiver.url}/strict`,
        ordering_mode: "strict",
      });
      const plain = await createEndpoint(tenant, { ...settings, url: `${receiver.url}/plain` });
      receiver.handle((_, response) => void response.writeHead(422).end());
      const died = await publishMany(tenant, DIED);
      await nothingOpen(tenant, PATIENCE_MS);
      await act(tenant, strict.id, "disable");
      const events = [...died, ...(await publishMany(tenant, EVENTS - DIED))];
      await nothingOpen(tenant, PATIENCE_MS);
      await act(tenant, strict.id, "enable");

      receiver.handle((_, response) => void response.end("ok"));
      const before = receiver.received.length;
      const dry = await expectStatus(
        201,
        tenant.admin.post("/v1/replays", { filter: { event_type: "order.created" }, dry_run: true }),
      );
      const owed = 2 * EVENTS;
      expect(dry.matched_at_least).toBe(Math.min(owed, dry.matched ?? dry.matched_at_least));
      if (owed <= 20_000) expect(dry.matched).toBe(owed);
      const startedAt = Date.now();
      await expectStatus(200, tenant.admin.post(`/v1/replays/${dry.id}/start`));
      await receiver.waitFor(before + Math.floor(owed / 3), PATIENCE_MS);
      const killed = relay.kill();
      const inTime = receiver.received.length;
      await killed;
      const atKill = readLedger(stateDir, tenant.id).deliveries.filter(({ id }) => isReplay(id));
      expect(atKill.length).toBeGreaterThan(0);
      expect(atKill.length).toBeLessThan(owed);

      const again = await startRelayProcess({ port, stateDir });
      const replay = await eventually(async () => {
        const { body } = await tenant.admin.get(`/v1/replays/${dry.id}`);
        return body.state === "running" ? null : body;
      }, PATIENCE_MS);
      expect(replay).toMatchObject({ state: "completed", matched: owed, replayed: owed, looked_at: owed, skipped: {} });
      await nothingOpen(tenant, PATIENCE_MS);
      await again.stop();

      const ledger = readLedger(stateDir, tenant.id);
      const replays = ledger.deliveries.filter(({ id }) => isReplay(id));
      const wanted = events.flatMap((eventId) => [strict.id, plain.id].map((endpointId) => `${eventId} ${endpointId}`));
      const made = replays.map(({ eventId, endpointId }) => `${eventId} ${endpointId}`);
      expect(made.toSorted()).toEqual(wanted.toSorted());
      expect(replays.filter(({ status }) => status !== "succeeded")).toEqual([]);

      const visits = receiver.received.slice(before);
      const eventsAt = (path: string) => [
        ...new Set(visits.filter((visit) => visit.path === path).map(({ headers }) => headers["x-webhook-event-id"])),
      ];
      expect(eventsAt("/strict")).toEqual(events);
      expect(eventsAt("/plain").toSorted()).toEqual(events.toSorted());
      // A request whose answer died with the relay is made again, and nothing else is.
      const repeated = visits.length - owed;
      expect(repeated).toBeGreaterThanOrEqual(0);
      expect(repeated).toBeLessThanOrEqual(MAX_OPEN + 1);
      console.log(
        `replays: ${owed} dead letters; killed with ${atKill.length} replays made and ${inTime - before} requests seen; ` +
          `${repeated} requests repeated; ${Date.now() - startedAt} ms`,
      );
    }),
);

/** The number of a replay stands behind event and endpoint. */
const isReplay = (id: string) => id.length > "dlv_".length + 26 + 16;
