import type { CentralDeps, ShardDeps } from "../app/deps.ts";
import type { Principal } from "../app/principal.ts";

/** What the middleware leaves for the routes. */
export interface HttpContext {
  Bindings: Env;
  Variables: {
    requestId: string;
    central: CentralDeps;
    /** The adapters of the shard the caller's tenant lives in. */
    deps: ShardDeps;
    principal: Principal;
    /** Of what anybody may keep; everything else is kept by nobody. */
    cacheControl?: string;
    /** Who publishes, where there is no principal: for the log. */
    tenantId: string;
  };
}
