import { expect, test } from "vitest";
import {
  describeDeployment,
  forEnvironment,
  readWranglerToml,
  type RawConfig,
} from "../../../scripts/deploy/config.ts";

const toml = readWranglerToml();
const withEnvironment = (part: Partial<RawConfig>): RawConfig => ({ ...toml, env: { staging: part } });

/** Every name of a resource in a configuration. */
const namesOf = ({ name, d1_databases, r2_buckets, queues }: RawConfig) => [
  name,
  ...(d1_databases ?? []).map((database) => database.database_name),
  ...(r2_buckets ?? []).map((bucket) => bucket.bucket_name),
  ...(queues?.producers ?? []).map(({ queue }) => queue),
  ...(queues?.consumers ?? []).flatMap((consumer) => [consumer.queue, consumer.dead_letter_queue]),
];

test("an environment shares no resource with the relay beside it, and is otherwise the same", () => {
  const staging = forEnvironment(toml, "staging");
  const own = namesOf(staging).filter((name) => name !== undefined);
  expect(own).toEqual(
    namesOf(toml)
      .filter((name) => name !== undefined)
      .map((name) => `${name}-staging`),
  );
  const bindingsOf = (config: RawConfig) =>
    [...config.d1_databases!, ...config.r2_buckets!, ...config.queues!.producers!].map(({ binding }) => binding);
  expect(bindingsOf(staging)).toEqual(bindingsOf(toml));
  const { name: _name, d1_databases: _db, r2_buckets: _r2, queues: _queues, ...same } = toml;
  expect(staging).toMatchObject(same);
});

test("ids, routes and where a relay answers are not handed on", () => {
  const config: RawConfig = {
    ...toml,
    d1_databases: [{ binding: "DB", database_name: "hooklane", database_id: "of production" }],
    routes: [{ pattern: "hooks.example.com", custom_domain: true }],
    vars: { ...toml.vars, OWN_HOSTS: "hooks.example.com" },
  };
  const staging = forEnvironment(config, "staging");
  expect(staging.d1_databases).toEqual([{ binding: "DB", database_name: "hooklane-staging" }]);
  expect(staging.routes).toBeUndefined();
  expect(staging.vars).toEqual(toml.vars);
});

test("what the environment's own section says wins: its settings one by one, anything else whole", () => {
  const routes = [{ pattern: "staging.example.com", custom_domain: true }];
  const staging = forEnvironment(withEnvironment({ vars: { RETENTION_DAYS: "3" }, routes }), "staging");
  expect(staging.vars).toEqual({ ...toml.vars, RETENTION_DAYS: "3" });
  expect(staging.routes).toEqual(routes);
  expect(staging.env).toBeUndefined();
});

test("the queues to be made are those that are read and never sent to: the dead-letter queues, each once", () => {
  const { consumedQueues, databases, bucket, requiredSecrets } = describeDeployment(toml);
  expect(consumedQueues).toEqual(["hooklane-first-attempts-dead", "hooklane-retries-dead", "hooklane-outcomes-dead"]);
  expect({ databases, bucket, requiredSecrets }).toEqual({
    databases: [{ binding: "DB", name: "hooklane" }],
    bucket: "hooklane-payloads",
    requiredSecrets: ["OPERATOR_TOKEN", "SECRETS_KEY"],
  });
});

test("a resource without a name is refused by its binding", () => {
  expect(() => describeDeployment({ ...toml, d1_databases: [{ binding: "DB_1" }] })).toThrow("DB_1");
  expect(() => describeDeployment({ ...toml, r2_buckets: [{ binding: "PAYLOADS" }] })).toThrow("PAYLOADS");
});
