import type { Endpoint, PageRequest } from "../../core/model.ts";
import type { Replay, ReplayFilter } from "../../core/replay.ts";
import type { Runtime } from "../runtime.ts";
import type { ChooseEventsDeps } from "./choose-events.ts";

export interface ReplayDeps extends ChooseEventsDeps, Pick<Runtime, "now" | "randomBytes"> {
  endpoints: { find(tenantId: string, id: string): Promise<Endpoint | null> };
  /** By a bounded look; `matched` is null where it did not come to the end. */
  countReplayable(
    tenantId: string,
    filter: ReplayFilter,
    includeReplayed: boolean,
    now: number,
  ): Promise<{ matched: number | null; matchedAtLeast: number; sample: string[] }>;
  /** Null, and nothing stored, when it would run and the tenant has as many running as it may. */
  insertReplayJob(tenantId: string, replay: Replay, endpointId: string | null, now: number): Promise<Replay | null>;
  /** The row as it is then; null when there is none. */
  startReplay(tenantId: string, id: string, endpointId: string | null, now: number): Promise<Replay | null>;
  cancelReplay(tenantId: string, id: string, now: number): Promise<Replay | null>;
  findReplay(tenantId: string, id: string): Promise<Replay | null>;
  listReplays(tenantId: string, request: PageRequest): Promise<Replay[]>;
  /** Has the watchdog look now. Never fails; it looks by itself within a minute in any case. */
  callWatchdog(): void;
}
