/** Time and chance, handed in by `compose.ts` so that rules and use-cases can be run at any moment with any luck. */
export interface Runtime {
  /** Milliseconds since 1970 UTC. */
  now(): number;
  /** Uniform in [0, 1). */
  random(): number;
  randomBytes(length: number): Uint8Array;
  sleep(ms: number): Promise<void>;
}

export interface Clock {
  /** Milliseconds with their fraction; only differences count. Stands still while code runs where the platform's does. */
  clock(): number;
}
