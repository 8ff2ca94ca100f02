declare module "vitest" {
  interface ProvidedContext {
    /** The folder in which each file leaves what it has counted. */
    totals: string;
  }
}

/** What is counted of every history. */
export const MEASURED = ["steps", "events", "deliveries", "attempts", "requests"] as const;

/** Kinds of broken promises, by the words a violation begins with. */
export const KINDS = {
  lost: ["lost", "acknowledged and not on record", "left open", "event lost", "delivery lost", "attempt lost"],
  doubled: [
    "one attempt, two requests",
    "two events for one key",
    "one key for two events",
    "request after a known success",
  ],
  "out of order": ["out of order", "two at a time in one lane", "attempt of what is not the head of its lane"],
};

/** Of a violation that is of none of these kinds. */
export const OTHERWISE = "otherwise against the contract";
