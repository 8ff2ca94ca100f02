import { resolve } from "node:path";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { Response } from "miniflare";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// The required secrets come as bindings below; wrangler would warn that its own files lack them.
process.env["WRANGLER_LOG"] ??= "error";

const SECRETS_KEY = `test:${Buffer.alloc(32, 7).toString("base64")}`;

/** These only end a test that would wait for ever: how fast a machine is must not matter. */
const PATIENT = { testTimeout: 120_000, hookTimeout: 120_000, expect: { poll: { timeout: 60_000 } } };

const SWEEPS = "test/workerd/faults/**/*.test.ts";

/** All but one is vitest's own idea: of two cores one. Projects that run at the same time must agree on it. */
const ALL_CORES = "100%";

/**
 * The Worker's own modules inside the runtime, with real D1, R2, Queues and objects. Over two databases, since whatever goes
 * wrong with one goes wrong there too; what is only so with one, the relays of the e2e tests show.
 */
async function workerdProject(name: string, files: { include: string[]; exclude?: string[] }) {
  return {
    plugins: [
      cloudflareTest({
        wrangler: { configPath: "./wrangler.toml" },
        miniflare: {
          // FAULTS is the ledger of the sweeps in test/workerd/faults, whose watchdog must find nobody else's rows.
          d1Databases: ["DB", "DB_1", "FAULTS"],
          // Beside those of wrangler.toml, which no test comes near: what a test of limits counts with.
          ratelimits: {
            TWO_IN_TEN_SECONDS: { namespace_id: "2", simple: { limit: 2, period: 10 } },
            THREE_IN_TEN_SECONDS: { namespace_id: "3", simple: { limit: 3, period: 10 } },
          },
          // Nobody is at the addresses of these tests' endpoints; real receivers are for the e2e tests.
          outboundService: () => new Response("ok"),
          bindings: {
            TEST_MIGRATIONS: await readD1Migrations("./migrations"),
            OPERATOR_TOKEN: "test-operator-token",
            SECRETS_KEY,
            ALLOW_PRIVATE_DESTINATIONS: "true",
            RELAY_REGION: "local",
            HOOKLANE_CHAOS: process.env["HOOKLANE_CHAOS"] ?? "",
          },
        },
      }),
    ],
    test: {
      name,
      ...files,
      setupFiles: ["test/workerd/support/migrate.ts"],
      // Files share a runtime, one for each core: every test makes a tenant of its own.
      isolate: false,
      maxWorkers: ALL_CORES,
      ...PATIENT,
    },
  };
}

/** Files that take or wait for a minute. Begun last they are what everybody waits for. */
const LONGEST = [
  "kills",
  "lane-changes",
  "docs-commands",
  "backlog",
  "fan-out",
  "deploy",
  "start",
  "lane-limits",
  "outage",
  "outage-past-lease",
  "shards",
  "resolver",
  "replays",
].map((name) => `/e2e/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex((end) => moduleId.endsWith(end));
      return place === -1 ? LONGEST.length : place;
    };
    // oxlint-disable-next-line unicorn/no-array-sort -- the sequencer's own
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    // The Worker's lines for requests and attempts would bury what fails.
    onConsoleLog: (log) => (/"event":"(request|attempt)"/.test(log) ? false : undefined),
    projects: [
      // Nothing of theirs outlives a file, so they share a process too.
      {
        test: { name: "unit", include: ["test/unit/**/*.test.ts"], isolate: false, maxWorkers: ALL_CORES, ...PATIENT },
      },
      {
        // The real engine on SQLite and a clock of its own, in Node: thousands of histories where the runtime would run dozens.
        resolve: {
          alias: { "cloudflare:workers": resolve(import.meta.dirname, "test/histories/support/cloudflare-workers.ts") },
        },
        test: {
          name: "histories",
          include: ["test/histories/**/*.test.ts"],
          setupFiles: ["test/histories/support/isolate-memory.ts"],
          globalSetup: ["test/histories/support/totals.ts"],
          maxWorkers: ALL_CORES,
          ...PATIENT,
        },
      },
      await workerdProject("workerd", { include: ["test/workerd/**/*.test.ts"], exclude: [SWEEPS] }),
      // Their clock is everybody's in a runtime, so they have one in which no other test's objects are awake.
      await workerdProject("faults", { include: [SWEEPS] }),
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["test/e2e/support/shared-relays.ts"],
          setupFiles: ["test/e2e/support/after-each-file.ts"],
          isolate: false,
          ...PATIENT,
          testTimeout: 400_000,
          hookTimeout: 400_000,
          // They mostly wait: for retries, leases and the watchdog. They come last, and have the machine to themselves.
          maxWorkers: 6,
          maxConcurrency: 20,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
