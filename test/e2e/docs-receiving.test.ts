import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createEndpoint, createTenant, eventually, expectStatus, publish, terminalDelivery } from "./support/client.ts";
import { marked, namedBlock, readDoc } from "./support/docs/markdown.ts";
import { mismatch } from "./support/docs/shown.ts";
import { withReceiver } from "./support/receiver.ts";
import { CASES, toLine } from "./support/receiving/cases.ts";
import { SOURCE_CASES } from "./support/receiving/source-cases.ts";
import { LANGUAGES } from "./support/receiving/languages.ts";
import { freePort, sharedRelay, type SharedRelay } from "./support/relay-process.ts";

const page = readDoc("docs/receiving.md");
const drivers = resolve(import.meta.dirname, "support/receiving");
const node = process.execPath;

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A new folder with these files of the page in it, and what runs them. */
function folderWith(files: string[], driver?: string): string {
  const folder = mkdtempSync(join(tmpdir(), "hooklane-receiving-"));
  folders.push(folder);
  symlinkSync(resolve(import.meta.dirname, "../../node_modules"), join(folder, "node_modules"));
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), namedBlock(page, file));
  }
  if (driver) cpSync(join(drivers, driver), join(folder, driver));
  return folder;
}

const isThere = (command: string) => spawnSync("which", [command]).status === 0;

describe("the page's verify accepts what is genuine and fresh, and refuses all else", () => {
  test.for(LANGUAGES)("$name", ({ name, file, driver, needs, commands, environment }, { skip }) => {
    const missing = needs.filter((command) => !isThere(command));
    if (missing.length > 0) {
      const note = `NOT RUN: the ${name} of docs/receiving.md, as ${missing.join(" and ")} is not on this machine`;
      console.warn(note);
      skip(note);
    }
    // The library takes bodies as text.
    const isText = (body: Buffer) => Buffer.from(body.toString()).equals(body);
    const cases = file === "verify-with-library.mjs" ? CASES.filter(({ body }) => isText(body)) : CASES;

    const cwd = folderWith([file], driver);
    let printed = "";
    const input = cases.map(toLine).join("");
    const env = { ...process.env, ...environment };
    for (const [command, ...args] of commands) {
      printed = execFileSync(command!, args, { cwd, env, input, encoding: "utf8", stdio: "pipe" });
    }
    const verdicts = printed.trim().split("\n");
    const said = cases.map(({ name }, i) => `${verdicts[i]}: ${name}`);
    expect(said).toEqual(cases.map(({ name, accepted }) => `${accepted ? "accepted" : "refused"}: ${name}`));
    expect(verdicts).toHaveLength(cases.length);
  });
});

describe("the page's verify of a source's signature, without a secret", () => {
  test.each(SOURCE_CASES)("$name", async ({ keys, endpointId, headers, body, now, accepted }) => {
    const module = join(folderWith(["verify-source.mjs"]), "verify-source.mjs");
    const { verify } = await import(pathToFileURL(module).href);
    if (accepted) verify(keys, endpointId, headers, body, now);
    else expect(() => verify(keys, endpointId, headers, body, now)).toThrow(Error);
  });
});

describe("beside a relay", () => {
  let relay: SharedRelay;
  beforeAll(async () => {
    relay = await sharedRelay();
  });

  test("a request has the headers and the body that are shown", () =>
    withReceiver(async (receiver) => {
      const [shownHead, shownBody] = marked(page, "request")
        .replaceAll(/```\w*\n/g, "")
        .split("\n\n");
      const shown = shownHead!.split("\n").slice(1);
      const shownHeaders = Object.fromEntries(shown.map((line) => line.split(": ") as [string, string]));
      const tenant = await createTenant(relay.url);
      await createEndpoint(tenant, { url: receiver.url });
      const { id } = await publish(tenant, { type: "order.created" });
      const { payload } = JSON.parse(shownBody!);
      await publish(tenant, { type: "order.paid", ordering_key: "order-42", cause_event_id: id, payload });
      await receiver.waitFor(2);
      const { headers, body } = receiver.received.find((one) => one.headers["x-webhook-event-type"] === "order.paid")!;

      // Of HTTP itself, and of Cloudflare, as the page says.
      const others = /^(host|connection|content-length|transfer-encoding|accept(-encoding)?|cf-.*)$/;
      const sent = Object.keys(headers).filter((name) => !others.test(name));
      expect(sent.toSorted()).toEqual(
        Object.keys(shownHeaders)
          .map((name) => name.toLowerCase())
          .toSorted(),
      );
      for (const [name, value] of Object.entries(shownHeaders)) {
        const got = headers[name.toLowerCase()] as string;
        expect(got.length, name).toBe(value.length);
        expect(mismatch(value, got), name).toBeNull();
      }
      expect(mismatch(JSON.parse(shownBody!), JSON.parse(body.toString()))).toBeNull();
      expect(Object.keys(JSON.parse(body.toString()))).toEqual(Object.keys(JSON.parse(shownBody!)));
    }));

  /** The page's own receiver, in a process of its own. */
  async function startPagesReceiver(folder: string, secret: string, port: number) {
    const env = { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) };
    const child = spawn(node, ["receiver.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill());
    const log: string[] = [];
    child.stdout.on("data", (chunk: Buffer) => log.push(...chunk.toString().trim().split("\n")));
    await eventually(() => fetch(`http://localhost:${port}`).catch(() => null));
    return {
      log,
      async stop() {
        child.kill();
        await once(child, "exit");
      },
    };
  }

  test("the receiver acts once on each event, keeps the newest version, and can be told the right secret later", async () => {
    const folder = folderWith(["verify.mjs", "receiver.mjs"]);
    const port = await freePort();
    const tenant = await createTenant(relay.url);
    const retry_policy = { delays_seconds: [0.2], jitter: 0, max_attempts: 50 };
    const endpoint = await createEndpoint(tenant, { url: `http://localhost:${port}/hook`, retry_policy });
    const orders = () => {
      const db = new DatabaseSync(join(folder, "shop.db"), { readOnly: true });
      const rows = db.prepare("select id, status, version from orders order by id").all();
      db.close();
      return rows.map((row) => ({ ...row }));
    };
    const publishOrder = async (payload: unknown, type = "order.paid") =>
      (await publish(tenant, { type, payload })).deliveries[0].id as string;

    const misconfigured = await startPagesReceiver(folder, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", port);
    const first = await publishOrder({ id: 42, status: "paid", version: 7 });
    await eventually(async () => {
      const { body } = await tenant.admin.get(`/v1/deliveries/${first}`);
      return body.last_status_code === 401;
    });
    expect(orders()).toEqual([]);
    await misconfigured.stop();

    const { log } = await startPagesReceiver(folder, endpoint.secret, port);
    const delivered = await terminalDelivery(tenant, first);
    expect(delivered).toMatchObject({ status: "succeeded" });
    expect(delivered.attempts.at(-1).partner_request_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(orders()).toEqual([{ id: 42, status: "paid", version: 7 }]);

    const older = await publishOrder({ id: 42, status: "created", version: 6 });
    expect(await terminalDelivery(tenant, older)).toMatchObject({ status: "succeeded" });
    expect(orders()).toEqual([{ id: 42, status: "paid", version: 7 }]);

    const replay = await expectStatus(202, tenant.admin.post(`/v1/deliveries/${first}/replay`));
    expect(await terminalDelivery(tenant, replay.id)).toMatchObject({ status: "succeeded" });
    await eventually(async () => log.some((line) => line.endsWith("seen before")));
    expect(log.filter((line) => line.startsWith(delivered.idempotency_key)).map((line) => line.split(": ")[1])).toEqual(
      ["applied", "seen before"],
    );

    const unusable = await publishOrder({ id: "forty-two" });
    expect(await terminalDelivery(tenant, unusable)).toMatchObject({
      final_outcome: "rejected",
      last_status_code: 422,
    });
    const unwanted = await publishOrder({ id: 1 }, "customer.created");
    expect(await terminalDelivery(tenant, unwanted)).toMatchObject({ status: "succeeded", last_status_code: 204 });
  });
});

test("the SQL of acting once applies a change once, in order of its version, and forgets only what cannot come again", () => {
  const [schema, change, forget] = page.blocks.filter(({ language }) => language === "sql").map(({ text }) => text);
  const db = new DatabaseSync(":memory:");
  db.exec(schema!);
  const [begin, insert, save, commit] = change!.split(";").map((statement) => statement.trim());
  const apply = (webhook_id: string, version: number, now_seconds = 0) => {
    db.exec(begin!);
    try {
      db.prepare(insert!).run({ webhook_id, now_seconds });
      db.prepare(save!).run({ id: 42, status: `v${version}`, version });
      db.exec(commit!);
      return true;
    } catch {
      db.exec("rollback");
      return false;
    }
  };
  const status = () => db.prepare("select status from orders").get()!["status"];
  const day = 86_400;
  expect([apply("msg_1", 2), status()]).toEqual([true, "v2"]);
  expect([apply("msg_1", 3), status()]).toEqual([false, "v2"]);
  expect([apply("msg_2", 1, 2 * day), status()]).toEqual([true, "v2"]);
  expect([apply("msg_3", 3, 3 * day), status()]).toEqual([true, "v3"]);
  db.prepare(forget!.split(";")[0]!).run({ now_seconds: 32 * day });
  expect([apply("msg_1", 3), apply("msg_2", 3), apply("msg_3", 3)]).toEqual([true, false, false]);
});
