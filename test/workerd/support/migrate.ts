import { applyD1Migrations, type D1Migration } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { shardsOf } from "../../../src/compose.ts";

const { TEST_MIGRATIONS } = env as unknown as { TEST_MIGRATIONS: D1Migration[] };
for (const database of shardsOf(env as Env).values()) await applyD1Migrations(database, TEST_MIGRATIONS);
