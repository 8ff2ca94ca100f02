import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../../../package.json" with { type: "json" };
import { parseSettings } from "../../../../src/env.ts";
import { namedBlock, readDoc } from "./markdown.ts";
import { isInRepository, isWhole, type Outcome } from "./reader.ts";
import type { Session } from "./session.ts";
import { wranglerMistake } from "./wrangler-help.ts";

/** How a command of a page is dealt with. What no rule knows fails, so that whatever is documented is looked at. */
interface Rule {
  command: RegExp;
  /** Gives what it did where a reader would look at it; throws where it does not do what the page says. */
  run(session: Session, command: string): Promise<Outcome | void>;
}

/** Not run here, because a test or CI runs it already: this file says so, with these words. */
const coveredBy = (command: RegExp, file: string, words: string): Rule => ({
  command,
  run: async ({ reader }) => {
    const text = readFileSync(join(reader.folder, file), "utf8");
    if (!text.includes(words)) throw new Error(`${file} does not cover this any more: ${words} is not in it`);
  },
});

const shell = async ({ reader }: Session, command: string): Promise<Outcome> => {
  const outcome = await reader.run(command);
  if (outcome.exitCode !== 0) throw new Error(`${command} ended with ${outcome.exitCode}:\n${outcome.printed}`);
  return outcome;
};

export const RULES: Rule[] = [
  coveredBy(/^npm ci$/, ".ci/run", "npm ci"),
  coveredBy(/^npm test$/, ".ci/run", "npm test"),
  coveredBy(/^npm run check$/, ".ci/run", "npm run check"),
  coveredBy(/^npm install standardwebhooks$/, "test/e2e/docs-receiving.test.ts", "verify-with-library.mjs"),

  { command: /^(METRICS_TOKEN=\S+ )?npm start$/, run: (session, command) => session.startRelay(command) },
  { command: /^npm run seed$/, run: (session) => session.seed() },
  { command: /^npm run demo$/, run: shell },
  // Its port is taken from wrangler's own default, where something else may be.
  {
    command: /^npm run dev$/,
    run: async ({ reader }) => {
      const dev = await reader.start(`npm run dev -- --port ${reader.port} --inspector-port 0`, /Ready on/);
      const health = await fetch(`http://localhost:${reader.port}/health`);
      await dev.stop();
      if (health.status !== 200) throw new Error(`npm run dev: /health answers ${health.status}`);
    },
  },
  // It needs an account: what can be run of it without one is the matter of tests of its own.
  {
    command: /^npm run deploy( -- \S.*)?$/,
    run: async ({ reader }) => {
      const tests = readdirSync(join(reader.folder, "test"), { recursive: true }) as string[];
      const isTested = tests.some((file) => /deploy[\w-]*\.test\.ts$/.test(file));
      if (!("deploy" in packageJson.scripts) || !isTested)
        throw new Error("npm run deploy: no such script, or no test of it");
    },
  },
  // These run the tests, this one among them, and the benches.
  {
    command:
      /^(npm run (?:test:\w+|bench(?::\w+)?( -- \S.*)?)|npx vitest run --project (unit|workerd|e2e) (test\/\S+))$/,
    run: async (_, command) => {
      const script = /^npm run (\S+)/.exec(command)?.[1];
      const file = /(test\/\S+)$/.exec(command)?.[1];
      const exists = script ? script in packageJson.scripts : isInRepository(file!);
      if (!exists) throw new Error(`${command}: there is no ${script ?? file}`);
    },
  },
  coveredBy(/^node signed\.mjs$/, "test/e2e/signed-docs.test.ts", "signed-publish"),
  { command: /^npm run (format|types|lint|typecheck|knip|contract:update)$/, run: async () => {} },
  { command: /^git pull$/, run: async () => {} },

  { command: /^(curl |for )/, run: shell },
  { command: /^(export )?\w+=("[^"$]*("\$\w+)?[^"]*"|\S*)$/, run: shell },
  // Somebody's own receiver: it runs until it is stopped.
  { command: /^node -e '.*\.listen\(\d+\)'$/, run: (session, command) => session.startReceiver(command) },
  {
    command: /^WEBHOOK_SECRET=whsec_\S+ node receiver\.mjs$/,
    run: async (session, command) => {
      const { folder } = session.reader;
      const page = readDoc("docs/receiving.md");
      for (const file of ["verify.mjs", "receiver.mjs"]) writeFileSync(join(folder, file), namedBlock(page, file));
      // The page asks for a Node that the machine may lack; the repository has one.
      const own = command.replace(" node ", " node_modules/.bin/node ");
      await session.startReceiver(`PORT=${session.receiverPort} ${own}`);
    },
  },

  // Files in the reader's folder.
  { command: /^echo "\w+=.*" >>? [\w.]+$/, run: shell },
  { command: /^rm secrets\.env$/, run: shell },
  { command: /^npx wrangler d1 (execute|migrations apply) DB --local( |$)/, run: shell },
  {
    command: /^npx wrangler deploy --secrets-file secrets\.env$/,
    run: async ({ reader }, command) => {
      const read = (file: string) => readFileSync(join(reader.folder, file), "utf8");
      const vars = read("wrangler.toml").split("\n[vars]\n")[1]!.split("\n[")[0]!;
      const secrets = read("secrets.env").matchAll(/^(\w+)=(.*)$/gm);
      // Throws where the Worker would not take them.
      parseSettings(
        Object.fromEntries(
          [...vars.matchAll(/^(\w+) = "(.*)"$/gm), ...secrets].map(([, name, value]) => [name!, value!]),
        ),
      );
      await checkWrangler(reader.folder, command);
    },
  },
  // These need an account.
  { command: /^npx wrangler /, run: ({ reader }, command) => checkWrangler(reader.folder, command) },
];

async function checkWrangler(folder: string, command: string): Promise<void> {
  const mistake = await wranglerMistake(folder, command);
  if (mistake) throw new Error(mistake);
}

/** The commands of a block, comments left out, each whole: quotes and `\` may carry it over lines. */
export function commandsOf(text: string): string[] {
  const commands: string[] = [];
  let open = "";
  for (const line of text.split("\n")) {
    if (open === "" && /^\s*(#|$)/.test(line)) continue;
    open += open === "" ? line : `\n${line}`;
    if (!isWhole(open)) continue;
    commands.push(...withoutComment(open).split(/ && (?=npm )/));
    open = "";
  }
  if (open !== "") throw new Error(`A command is not whole: ${open}`);
  return commands.map((command) => command.trim());
}

/** A comment behind a command is set off by two spaces. */
function withoutComment(command: string): string {
  return command.replace(/ {2,}# .*$/, "");
}
