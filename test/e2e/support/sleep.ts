/** For an outage or a period that is to last this long; never for something that is about to happen. */
export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
