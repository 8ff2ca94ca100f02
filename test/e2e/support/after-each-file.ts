import { afterAll } from "vitest";
import { expectConformance } from "./conformance.ts";
import { expectNoLeak, removeRelays } from "./relay-process.ts";

// Run for each file anew, while the modules stay: files share processes. Of a file's hooks this is the last.
afterAll(() => {
  try {
    expectConformance();
    expectNoLeak();
  } finally {
    removeRelays();
  }
});
