import type { PageRequest, Source } from "../../core/model.ts";
import type { Result } from "../../core/result.ts";
import type { Runtime } from "../runtime.ts";

export interface SourceDeps extends Pick<Runtime, "now" | "randomBytes"> {
  sources: {
    insert(tenantId: string, source: Source): Promise<Result<null, "name_taken" | "quota_exceeded">>;
    find(tenantId: string, id: string): Promise<Source | null>;
    page(tenantId: string, request: PageRequest): Promise<Source[]>;
    update(
      tenantId: string,
      id: string,
      changes: { name?: string; allowedEventTypes?: string[] },
    ): Promise<Result<Source | null, "name_taken">>;
    delete(tenantId: string, id: string, now: number): Promise<boolean>;
  };
}
