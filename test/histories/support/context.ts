import type { DeliverDeps } from "../../../src/app/deliver/deliver.ts";
import type { Isolate } from "./isolate.ts";
import type { World } from "./world.ts";

type OutboundRequest = Parameters<DeliverDeps["send"]>[0];
export type OutboundAnswer = Awaited<ReturnType<DeliverDeps["send"]>>;

/** Makes requests for processes. */
export interface Send {
  begin(request: OutboundRequest, from: Isolate, leftAt: number, answer: (answer: OutboundAnswer) => void): void;
  /** The process has heard of what came of it. */
  told(request: OutboundRequest): void;
}

/** What the platform hands to a handler or an object. */
export function contextFor(
  world: World,
  isolate: Isolate,
  send: Send,
): Pick<ExecutionContext, "waitUntil" | "exports"> {
  return {
    waitUntil: (work: Promise<unknown>) =>
      void work.catch((error: unknown) => {
        world.log(`background: ${String(error)}`);
        world.judge(String(error));
      }),
    exports: {
      Sender: {
        send: async (request: OutboundRequest) => {
          const leftAt = world.now;
          const answer = await world.callBack<OutboundAnswer>("send", `request to ${request.url}`, (answer) =>
            send.begin(request, isolate, leftAt, (value) => answer({ value })),
          );
          send.told(request);
          return answer;
        },
      },
    } as unknown as ExecutionContext["exports"],
  };
}
