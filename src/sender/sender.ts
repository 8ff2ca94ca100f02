import { WorkerEntrypoint } from "cloudflare:workers";
import { sendRequest, type OutboundAnswer, type OutboundRequest } from "./send.ts";

/**
 * A stateless entrypoint for outbound requests. Each call is an invocation of its own, with its own allowance of
 * connections that wait for headers, so a receiver that hangs cannot use up those of others.
 */
export class Sender extends WorkerEntrypoint<Env> {
  send(request: OutboundRequest): Promise<OutboundAnswer> {
    return sendRequest(request);
  }
}
