/** What a thrown thing says, its cause first: wrappers quote the query and its parameters, which are a caller's data. */
export function describeFault(error: unknown): string {
  let innermost = error;
  while (innermost instanceof Error && innermost.cause !== undefined) innermost = innermost.cause;
  return String(innermost);
}

/** Texts of D1, R2 and the runtime between a Worker and its stores, in whole or in part. */
const STORE_FAULTS = [
  "D1_ERROR",
  "D1 DB",
  "D1 ",
  "R2",
  "Network connection lost",
  "storage caused object to be reset",
  "reset because its code was updated",
  "internal error; reference",
  "overloaded",
];

/** Whether a store was away or refused: the caller may try again. A constraint that failed is a fault of ours. */
export function isStoreFault(error: unknown): boolean {
  const text = describeFault(error);
  return STORE_FAULTS.some((part) => text.includes(part)) && !/constraint failed|SQLITE_ERROR|syntax error/i.test(text);
}
