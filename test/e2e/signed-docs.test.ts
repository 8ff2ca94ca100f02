import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { createClient, createTenant, expectStatus, listAll } from "./support/client.ts";
import { sharedRelay } from "./support/relay-process.ts";

const root = resolve(import.meta.dirname, "../..");

const relay = await sharedRelay();

async function createSource() {
  const tenant = await createTenant(relay.url);
  return { tenant, source: await expectStatus(201, tenant.admin.post("/v1/sources", { name: "shop" })) };
}

test("the example of signed publishing in docs/contract.md publishes", async () => {
  const { tenant, source } = await createSource();
  const contract = readFileSync(resolve(root, "docs/contract.md"), "utf8");
  const code = /<!-- signed-publish -->\s*```js\n([^]*?)```/.exec(contract)![1]!;
  const environment = { HOOKLANE_URL: relay.url, SOURCE_ID: source.id, SIGNING_KEY: source.signing_key };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: root,
    env: { ...process.env, ...environment },
  });
  expect(stdout).toMatch(/^202 /);
  const [event] = await listAll(tenant, "/v1/events");
  expect(event).toMatchObject({ source_id: source.id, idempotency_key: "order-42-created" });
});

test("a raw publish of text is signed with the library as docs/contract.md says", async () => {
  const { source } = await createSource();
  const [id, now, body] = ["export-1", new Date(), "order;total\n42;9,95\n"];
  const answer = createClient(relay.url, null).post("/v1/events/raw?type=order.created", body, {
    "Content-Type": "text/csv",
    "X-Webhook-Source": source.id,
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1_000)),
    "webhook-signature": new Webhook(source.signing_key).sign(id, now, "?type=order.created\ntext/csv\n\n" + body),
  });
  await expectStatus(202, answer);
});
