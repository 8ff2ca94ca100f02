import { WorkerEntrypoint } from "cloudflare:workers";
import { lookUpHost, type LookUpAnswer, type LookUpRequest } from "./look-up.ts";
import { sendRequest, type OutboundAnswer, type OutboundRequest } from "./send.ts";

/**
 * A stateless entrypoint for outbound requests. Each call is an invocation of its own, with its own allowance of
 * connections that wait for headers, so a receiver or resolver that hangs cannot use up those of others.
 */
export class Sender extends WorkerEntrypoint<Env> {
  send(request: OutboundRequest): Promise<OutboundAnswer> {
    return sendRequest(request);
  }

  lookUp(request: LookUpRequest): Promise<LookUpAnswer> {
    return lookUpHost(request);
  }
}
