import { applyD1Migrations, type D1Migration } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll } from "vitest";
import { shardsOf } from "../../../src/compose.ts";
import { endAllOpen } from "./scene.ts";

const { TEST_MIGRATIONS } = env as unknown as { TEST_MIGRATIONS: D1Migration[] };
for (const database of shardsOf(env as Env).values()) await applyD1Migrations(database, TEST_MIGRATIONS);

// Files share a runtime: what one leaves open would be delivered under the next.
afterAll(async () => {
  for (const database of shardsOf(env as Env).values()) await endAllOpen(database);
});
