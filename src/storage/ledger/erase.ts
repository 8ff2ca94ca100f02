/** Rows moved by one statement, so that no statement grows with a fan-out. */
const CHUNK = 500;

interface Ended {
  endpoint_id: string;
  /** Of the endpoint's lane, null where queues deliver. */
  generation: number | null;
}

/** What erasing a payload does to the ledger. */
export function createEraseLedger(db: D1Database) {
  return {
    /**
     * Says of an event that its payload is erased, and ends up to CHUNK of its pending deliveries, in one batch. Replays are
     * refused by that word, and a claim needs a delivery that is pending, so none can follow. Attempts in flight are left to
     * end. Gives back the lanes that lost something, and whether more may be pending. Primary keys.
     */
    async markErasedPart(tenantId: string, eventId: string, now: number) {
      const [, ended] = await db.batch<Ended>([
        db
          .prepare(
            `update event set payload_erased_at = ?3
             where tenant_id = ?1 and id = ?2 and payload_erased_at is null`,
          )
          .bind(tenantId, eventId, now),
        db
          .prepare(
            `update delivery set status = 'failed', final_outcome = 'payload_missing', terminal_at = ?3,
               next_attempt_at = null, hold_until = null
             where (tenant_id, event_id, endpoint_id, replay_no) in (
               select tenant_id, event_id, endpoint_id, replay_no from delivery
               where tenant_id = ?1 and event_id = ?2 and status = 'pending' limit ${CHUNK})
             returning endpoint_id, (select e.lane_generation from endpoint e
               where e.tenant_id = delivery.tenant_id and e.id = delivery.endpoint_id and e.route = 'lane') as generation`,
          )
          .bind(tenantId, eventId, now),
      ]);
      const lanes = new Map<string, { endpointId: string; generation: number }>();
      for (const { endpoint_id: endpointId, generation } of ended!.results) {
        if (generation !== null) lanes.set(endpointId, { endpointId, generation });
      }
      return { lanes: [...lanes.values()], hasMore: ended!.results.length === CHUNK };
    },
  };
}
