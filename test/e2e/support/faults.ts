/** What a test can make go wrong around the Worker's bindings, as `faulty-worker.ts` does it. What is not named works. */
export interface Faults {
  ledger?: LedgerFault;
  /** R2 refuses these. */
  payloads?: { gets?: boolean; puts?: boolean };
  /** Every queue refuses each send, or takes it and loses it. */
  queues?: "refused" | "lost";
}

export interface LedgerFault {
  /** A batch with any write in it counts as a write. */
  statements: "reads" | "writes";
  /** Only statements, or batches of them, that contain this text. */
  containing?: string;
  /** `refused` does nothing; `answer_lost` does the work and then throws. */
  fault: "refused" | "answer_lost";
  /** How many go through before it strikes. */
  after?: number;
  /** How often; without it, until the faults are set anew. */
  times?: number;
}

/** How often a fault struck since the faults were last set. */
export interface FaultCounts {
  ledger: number;
  payloads: number;
  queues: number;
}

export const FAULTS_PATH = "/__faults";
export const LEDGER_PATH = "/__ledger";
/** Given to a relay as HOOKLANE_ENTRY, so that its faults can be set. */
export const FAULTY_ENTRY = "test/e2e/support/faulty-worker.ts";

/** From the answer of this on, exactly these faults strike. Gives back how often the ones before did. */
export async function setFaults(relayUrl: string, faults: Faults): Promise<FaultCounts> {
  return callControl(relayUrl, { method: "POST", body: JSON.stringify(faults) });
}

export function countFaults(relayUrl: string): Promise<FaultCounts> {
  return callControl(relayUrl, { method: "GET" });
}

/** Writes straight into the first shard's ledger, past every rule but its own. */
export async function writeLedger(relayUrl: string, sql: string, ...values: unknown[]): Promise<void> {
  const response = await fetch(relayUrl + LEDGER_PATH, { method: "POST", body: JSON.stringify({ sql, values }) });
  if (!response.ok) throw new Error(`The ledger's control route answered ${response.status}`);
}

async function callControl(relayUrl: string, init: RequestInit): Promise<FaultCounts> {
  const response = await fetch(relayUrl + FAULTS_PATH, init);
  if (!response.ok) throw new Error(`The faults' control route answered ${response.status}`);
  return (await response.json()) as FaultCounts;
}
