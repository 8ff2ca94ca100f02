import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";

const db = (env as Env).DB;

/** Two tenants with one row of everything, written straight into the ledger; ids differ by their last letter. */
async function seed(x: string): Promise<void> {
  const sha = "x'00'";
  await db.batch(
    [
      `insert into tenant (id, name, shard, created_at) values ('t${x}', 'n', '0', 0)`,
      `insert into source (tenant_id, id, name, created_at) values ('t${x}', 's${x}', 'n', 0)`,
      `insert into retry_policy (tenant_id, id, policy) values ('t${x}', 'p${x}', '{}')`,
      `insert into endpoint (tenant_id, id, url, retry_policy_id, created_at) values ('t${x}', 'e${x}', 'u', 'p${x}', 0)`,
      `insert into subscription (tenant_id, id, endpoint_id, event_type_pattern, created_at)
         values ('t${x}', 'b${x}', 'e${x}', '*', 0)`,
      `insert into event (tenant_id, id, source_id, type, payload_ref, payload_sha256, payload_size, payload_is_json,
         content_type, occurred_at, relayed_at, expires_at)
         values ('t${x}', 'v${x}', 's${x}', 'a', 'r#0', ${sha}, 0, 1, 'c', 0, 0, 9)`,
      delivery(`'t${x}'`, `'v${x}'`, `'e${x}'`, `'b${x}'`, `'p${x}'`, 0),
      attempt(`'t${x}'`, `'v${x}'`, `'e${x}'`, 0),
    ].map((sql) => db.prepare(sql)),
  );
}

const delivery = (tenant: string, event: string, endpoint: string, subscription: string, policy: string, no = 1) =>
  `insert into delivery (tenant_id, event_id, endpoint_id, replay_no, subscription_id, status, retry_policy_id,
     created_at, expires_at) values (${tenant}, ${event}, ${endpoint}, ${no}, ${subscription}, 'pending', ${policy}, 0, 9)`;

const attempt = (tenant: string, event: string, endpoint: string, number = 1, columns = "", values = "") =>
  `insert into attempt (tenant_id, event_id, endpoint_id, replay_no, attempt_number, requested_at, endpoint_revision,
     signing_secret_ids${columns}) values (${tenant}, ${event}, ${endpoint}, 0, ${number + 1}, 0, 1, '[]'${values})`;

const secret = (tenant: string, endpoint: string, slot: number) =>
  `insert into signing_secret (tenant_id, endpoint_id, slot, id, wrapped_key, active_from)
     values (${tenant}, ${endpoint}, ${slot}, 'sec${slot}', x'00', 0)`;

beforeAll(async () => {
  await seed("1");
  await seed("2");
});

describe("a row that mixes two tenants is refused by the ledger itself", () => {
  test.each([
    [
      "an API key for another tenant's source",
      `insert into api_key (tenant_id, id, key_hash, prefix, scope, source_id,
      created_at) values ('t1', 'k', x'01', 'p', 'publish', 's2', 0)`,
    ],
    [
      "an endpoint with another tenant's policy",
      `insert into endpoint (tenant_id, id, url, retry_policy_id, created_at)
      values ('t1', 'e9', 'u', 'p2', 0)`,
    ],
    ["a secret of another tenant's endpoint", secret("'t1'", "'e2'", 0)],
    [
      "a subscription to another tenant's endpoint",
      `insert into subscription (tenant_id, id, endpoint_id,
      event_type_pattern, created_at) values ('t1', 'b9', 'e2', '*', 0)`,
    ],
    [
      "an event of another tenant's source",
      `insert into event (tenant_id, id, source_id, type, payload_ref,
      payload_sha256, payload_size, payload_is_json, content_type, occurred_at, relayed_at, expires_at)
      values ('t1', 'v9', 's2', 'a', 'r', x'00', 0, 1, 'c', 0, 0, 9)`,
    ],
    ["a delivery of another tenant's event", delivery("'t1'", "'v2'", "'e1'", "'b1'", "'p1'")],
    ["a delivery to another tenant's endpoint", delivery("'t1'", "'v1'", "'e2'", "'b1'", "'p1'")],
    ["a delivery for another tenant's subscription", delivery("'t1'", "'v1'", "'e1'", "'b2'", "'p1'")],
    ["a delivery under another tenant's policy", delivery("'t1'", "'v1'", "'e1'", "'b1'", "'p2'")],
    ["an attempt of another tenant's delivery", attempt("'t1'", "'v2'", "'e2'")],
    [
      "a note for a tenant that is none",
      `insert into operational_event (tenant_id, raised_at, id, type, facts) values ('t3', 0, 'n', 'a', '{}')`,
    ],
    [
      "a block by another tenant's delivery",
      `insert into lane_block (tenant_id, endpoint_id, lane_key, event_id,
      replay_no, blocked_at) values ('t1', 'e2', '', 'v2', 0, 0)`,
    ],
  ])("%s", async (_, sql) => {
    await expect(db.prepare(sql).run()).rejects.toThrow(/FOREIGN KEY constraint failed/);
  });
});

describe("the ledger refuses what cannot be", () => {
  test("a third signing secret has no slot", async () => {
    await db.batch([db.prepare(secret("'t1'", "'e1'", 0)), db.prepare(secret("'t1'", "'e1'", 1))]);
    await expect(db.prepare(secret("'t1'", "'e1'", 2)).run()).rejects.toThrow(/CHECK/);
    await expect(db.prepare(secret("'t1'", "'e1'", 1)).run()).rejects.toThrow(/UNIQUE/);
  });

  test.each([
    ["a second delivery of one event to one endpoint", delivery("'t1'", "'v1'", "'e1'", "'b1'", "'p1'", 0), /UNIQUE/],
    ["a status of no name", "update delivery set status = 'lost' where tenant_id = 't1'", /CHECK/],
    ["a terminal status without its time", "update delivery set status = 'failed' where tenant_id = 't1'", /CHECK/],
    ["an outcome class of no name", "update attempt set outcome_class = 'maybe' where tenant_id = 't1'", /CHECK/],
    ["an attempt before the first", attempt("'t1'", "'v1'", "'e1'", -1), /CHECK/],
    ["a status code under 100", attempt("'t1'", "'v1'", "'e1'", 5, ", status_code", ", 99"), /CHECK/],
    ["a status code over 599", attempt("'t1'", "'v1'", "'e1'", 5, ", status_code", ", 600"), /CHECK/],
  ])("%s", async (_, sql, refusal) => {
    await expect(db.prepare(sql).run()).rejects.toThrow(refusal);
  });

  test("one source and idempotency key are one event", async () => {
    const update = "update event set idempotency_key = 'k' where id = ?";
    await db.prepare(update).bind("v1").run();
    await db.prepare(update).bind("v2").run();
    const columns = `source_id, type, idempotency_key, payload_ref, payload_sha256, payload_size, payload_is_json,
      content_type, occurred_at, relayed_at, expires_at`;
    const insert = `insert into event (tenant_id, id, ${columns}) select tenant_id, 'v8', ${columns} from event where id = 'v1'`;
    await expect(db.prepare(insert).run()).rejects.toThrow(/UNIQUE/);
  });
});
