import { describeFault } from "./core/fault.ts";

/** A fault of ours, or of what we stand on, that nobody is told of otherwise. */
export function logFault(what: string, error: unknown): void {
  console.error(JSON.stringify({ level: "error", event: "fault", what, error: describeFault(error) }));
}
