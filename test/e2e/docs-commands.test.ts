import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { experimental_readRawConfig } from "wrangler";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient, createEndpoint, createTenant, eventually, publish } from "./support/client.ts";
import { commandsOf, RULES } from "./support/docs/commands.ts";
import { docPaths, readDoc, type Doc } from "./support/docs/markdown.ts";
import { createSession, type Session } from "./support/docs/session.ts";

/** Pages that are followed beside one relay, in this order; those without are followed in a clone of their own. */
const WITH_RELAY = [
  "README.md",
  "docs/retries.md",
  "docs/receiving.md",
  "docs/ordering.md",
  "docs/filters.md",
  "docs/versions.md",
  "docs/questions.md",
];
const SQL_PAGE = "docs/ledger.md";
const WITHOUT_RELAY = docPaths()
  .filter((path) => ![...WITH_RELAY, SQL_PAGE].includes(path))
  .filter((path) => readDoc(path).blocks.some(({ language }) => language === "sh"));

/** Does all that the page says, block by block. Gives back how many commands that were. */
async function followPage(session: Session, doc: Doc): Promise<number> {
  await session.turnPage();
  let count = 0;
  for (const [i, block] of doc.blocks.entries()) {
    if (block.language !== "sh") continue;
    const commands = commandsOf(block.text);
    const next = doc.blocks[i + 1];
    const shown: unknown = next?.language === "json" ? JSON.parse(next.text) : undefined;
    for (const [k, command] of commands.entries()) {
      await session.follow(command, k === commands.length - 1 ? shown : undefined).catch((error: unknown) => {
        throw new Error(`${doc.path}, the block at line ${block.line}: ${(error as Error).message}`, { cause: error });
      });
      count++;
    }
  }
  return count;
}

describe("beside one relay", () => {
  let session: Session;
  beforeAll(async () => {
    session = await createSession();
  });
  afterAll(() => session.close());

  test.each(WITH_RELAY)("every command of %s does what the page says", async (path) => {
    expect(await followPage(session, readDoc(path))).toBeGreaterThan(0);
  });

  test("what the README published has arrived at the seed's receiver, signed, and the seed prints the README's commands", async () => {
    await eventually(async () => /order\.created, attempt 1, signature verified\n.*"payload":/.test(session.seeded()));
    const squeezed = (text: string) => text.replace(/\s+/g, " ").replace(/hlk_[^\s…]+/, "hlk_…");
    const printed = squeezed(session.seeded());
    const { blocks } = readDoc("README.md");
    const seedAt = blocks.findIndex(({ text }) => text.startsWith("npm run seed"));
    const commands = blocks
      .slice(seedAt + 1, seedAt + 4)
      .filter(({ language }) => language === "sh")
      .flatMap(({ text }) => commandsOf(text));
    expect(commands).toHaveLength(4);
    for (const command of commands) {
      expect(printed).toContain(squeezed(command).replaceAll("8787", String(session.reader.port)));
    }
  });

  test("the receiver of docs/receiving.md has got what was published for it", async () => {
    await eventually(async () => /^msg_\S+ attempt 1: applied$/m.test(session.reader.terminals()));
  });

  test(`the commands and the SQL of ${SQL_PAGE} look at what the relay keeps`, async () => {
    const page = readDoc(SQL_PAGE);
    await session.startRelay();
    const url = `http://localhost:${session.reader.port}`;
    const tenant = await createTenant(url, "dev-operator-token");
    const nobody = `http://localhost:9999/hook`;
    const settings = { url: nobody, ordering_mode: "strict", on_exhausted: "block", retry_policy: { max_attempts: 1 } };
    const blocked = await createEndpoint(tenant, settings);
    await createEndpoint(tenant, { url: nobody });
    const first = await publish(tenant);
    await publish(tenant);
    const admin = createClient(url, tenant.adminKey);
    await eventually(async () => (await admin.get(`/v1/endpoints/${blocked.id}/lane`)).body.state === "blocked");
    await eventually(
      async () => (await admin.get("/v1/deliveries?error_class=network&status=pending")).body.data.length > 1,
    );
    const own: Record<string, string> = { ten: tenant.id, ep: blocked.id, evt: first.id, dlv: first.deliveries[0].id };

    expect(await followPage(session, page)).toBeGreaterThan(0);
    const sql = page.blocks.filter(({ language }) => language === "sql").map(({ text }) => text);
    const filled = sql.join("\n").replaceAll(/'(ten|ep|evt|dlv)_…'/g, (_, prefix: string) => `'${own[prefix]}'`);
    const statements = filled.split(";").filter((statement) => statement.trim() !== "");
    expect(statements.length).toBeGreaterThan(5);
    const quoted = filled.replaceAll("'", `'\\''`);
    const { exitCode, printed } = await session.reader.run(
      `npx wrangler d1 execute DB --local --json --command '${quoted}'`,
    );
    expect(exitCode, printed).toBe(0);
    const results: { results: unknown[] }[] = JSON.parse(printed);
    expect(results).toHaveLength(statements.length);
    for (const [i, { results: rows }] of results.entries()) expect(rows.length, statements[i]).toBeGreaterThan(0);
  });
});

test.each(WITHOUT_RELAY)("every command of %s does what the page says", async (path) => {
  const session = await createSession();
  try {
    await followPage(session, readDoc(path));
  } finally {
    await session.close();
  }
});

const pages = docPaths().map(readDoc);

test("a command that nobody has thought of fails", async () => {
  const session = await createSession();
  try {
    for (const command of [
      "npm run frobnicate",
      "wget http://localhost:8787/health",
      "rm -r src",
      "npx wrangler frobnicate",
    ]) {
      await expect(session.follow(command), command).rejects.toThrow();
    }
  } finally {
    await session.close();
  }
});

test("blocks are in languages whose tests look at them", () => {
  const known = ["sh", "json", "sql", "http", "mermaid", "toml", "yaml", "js", "python", "go", "java", "php"];
  const others = pages.flatMap(({ path, blocks }) =>
    blocks.filter(({ language }) => !known.includes(language)).map(({ line }) => `${path}:${line}`),
  );
  expect(others).toEqual([]);
});

test("what pages put into wrangler.toml is TOML, and sets what the relay reads", () => {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-docs-toml-"));
  try {
    const vars = pages.flatMap(({ blocks }) =>
      blocks
        .filter(({ language }) => language === "toml")
        .flatMap(({ text }) => {
          const config = join(folder, "wrangler.toml");
          writeFileSync(config, text);
          const { vars = {}, env = {} } = experimental_readRawConfig({ config }).rawConfig as {
            vars?: object;
            env?: Record<string, { vars?: object }>;
          };
          return [vars, ...Object.values(env).map((one) => one.vars ?? {})].flatMap((one) => Object.keys(one));
        }),
    );
    expect(vars.length).toBeGreaterThan(0);
    const named = readDoc("docs/operations.md").text;
    expect(vars.filter((name) => !named.includes(`| \`${name}\``))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the dead-letter queues that are made by hand are those that wrangler.toml names", () => {
  const text = pages.map((page) => page.text).join("\n");
  const made = [...text.matchAll(/^npx wrangler queues create (\S+)$/gm)].map(([, name]) => name!);
  if (made.length === 0) return;
  const named = [...readDoc("wrangler.toml").text.matchAll(/^dead_letter_queue = "(.+)"$/gm)].map(([, name]) => name!);
  expect([...new Set(made)].toSorted()).toEqual(named.toSorted());
});

test("commands that are named in passing are known and well-formed", async () => {
  const session = await createSession();
  try {
    const spans = pages.flatMap(({ path, text }) =>
      [...text.replace(/^```[\s\S]*?^```$/gm, "").matchAll(/`((?:[A-Z_]+=\S+\s)*(?:npx|npm|curl|node)\s[^`]+)`/g)].map(
        ([, command]) => ({ path, command: command!.replace(/\s+/g, " ").replace(/^([A-Z_]+=\S+ )+/, "") }),
      ),
    );
    const unknown = spans.filter(({ command }) => !RULES.some((rule) => rule.command.test(command)));
    expect(unknown).toEqual([]);
    const wrangler = spans.filter(({ command }) => command.startsWith("npx wrangler"));
    for (const { path, command } of wrangler) {
      const rule = RULES.at(-1)!;
      await expect(rule.run(session, command), `${path}: ${command}`).resolves.toBeUndefined();
    }
  } finally {
    await session.close();
  }
});
