import { describe, expect, test } from "vitest";
import { parseSettings } from "../../src/env.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");

function environment(over: Record<string, unknown> = {}) {
  return {
    OPERATOR_TOKEN: "operator-token-of-tests",
    SECRETS_KEY: `k1:${KEY}`,
    ALLOW_PRIVATE_DESTINATIONS: "false",
    RETENTION_DAYS: "30",
    MAX_PAYLOAD_BYTES: "262144",
    PUBLISH_LIMITS: "off",
    ENDPOINT_QUOTA_FREE: "100",
    ENDPOINT_QUOTA_PRO: "1000",
    ENDPOINT_QUOTA_ENTERPRISE: "10000",
    // Bindings stand in the same environment.
    DB: { prepare: () => null },
    ...over,
  };
}

function complaint(env: object): string {
  try {
    parseSettings(env);
  } catch (error) {
    return String(error);
  }
  throw new Error("was not refused");
}

describe("complete settings", () => {
  test("are read as what they mean", () => {
    expect(parseSettings(environment())).toEqual({
      OPERATOR_TOKEN: "operator-token-of-tests",
      SECRETS_KEY: [{ id: "k1", bytes: new Uint8Array(32).fill(7) }],
      ALLOW_PRIVATE_DESTINATIONS: false,
      RETENTION_DAYS: 30,
      MAX_PAYLOAD_BYTES: 262_144,
      PUBLISH_LIMITS: null,
      ENDPOINT_QUOTA_FREE: 100,
      ENDPOINT_QUOTA_PRO: 1_000,
      ENDPOINT_QUOTA_ENTERPRISE: 10_000,
      OWN_HOSTS: [],
      RELAY_REGION: null,
    });
  });

  test("name several hosts and keys, white space around them ignored", () => {
    const over = { OWN_HOSTS: " relay.example.com, ,relay.test:8787 ", SECRETS_KEY: `k2:${KEY}, k1:${KEY}\n` };
    const settings = parseSettings(environment(over));
    expect(settings.OWN_HOSTS).toEqual(["relay.example.com", "relay.test:8787"]);
    expect(settings.SECRETS_KEY.map(({ id }) => id)).toEqual(["k2", "k1"]);
  });

  test.each([
    "https://cloudflare-dns.com/dns-query",
    "https://dns.google/resolve?edns_client_subnet=0.0.0.0/0",
    "http://localhost:8053/dns-query",
    "http://127.0.0.1:8053/",
    "http://[::1]:8053/",
  ])("may name a resolver at %s", (DOH_URL) => {
    expect(parseSettings(environment({ DOH_URL })).DOH_URL).toBe(DOH_URL);
  });

  test("are parsed once an environment", () => {
    const env = environment();
    expect(parseSettings(env)).toBe(parseSettings(env));
    expect(parseSettings(environment())).not.toBe(parseSettings(env));
  });
});

describe("bad settings", () => {
  test.each([
    ["OPERATOR_TOKEN", 1_234_567_890_123_456],
    ["OPERATOR_TOKEN", "t".repeat(1_025)],
    ["METRICS_TOKEN", ""],
    ["METRICS_TOKEN", "fifteen-letters"],
    ["SECRETS_KEY", KEY],
    ["SECRETS_KEY", "k1:notbase64notbase64"],
    ["SECRETS_KEY", `k1:${KEY.slice(0, 40)}`],
    ["SECRETS_KEY", `same:${KEY},same:${KEY}`],
    ["ALLOW_PRIVATE_DESTINATIONS", "yes-please"],
    ["RETENTION_DAYS", "3661"],
    ["RETENTION_DAYS", "a-month"],
    ["RETENTION_DAYS", "7.55"],
    ["RETENTION_DAYS", ""],
    ["RETENTION_DAYS", "0"],
    ["ENDPOINT_QUOTA_FREE", ""],
    ["ENDPOINT_QUOTA_FREE", "-10"],
    ["ENDPOINT_QUOTA_PRO", "1e3456"],
    ["ENDPOINT_QUOTA_ENTERPRISE", "10.55"],
    ["MAX_PAYLOAD_BYTES", "99999999"],
    ["MAX_PAYLOAD_BYTES", "-4711"],
    ["PUBLISH_LIMITS", "free=4711/4712"],
    ["OWN_HOSTS", 4711],
    ["RELAY_REGION", 4711],
    ["DOH_URL", "dns.google"],
    ["DOH_URL", ""],
    ["DOH_URL", "http://dns.google/resolve"],
    ["DOH_URL", "http://127.0.0.1.nip.io/resolve"],
    ["DOH_URL", "ftp://localhost/resolve"],
    ["DOH_URL", "https://reader:hunter22@dns.google/resolve"],
  ])("%s of %j is named, and its value is not printed", (name, value) => {
    const text = complaint(environment({ [name]: value }));
    expect(text).toContain(`${name}: `);
    const telling = String(value)
      .split(/[:,]/)
      .filter((part) => part.length > 3);
    for (const part of telling) expect(text).not.toContain(part);
  });

  test("are all named at once, those that are missing too", () => {
    const text = complaint({ RETENTION_DAYS: "never" });
    for (const name of ["OPERATOR_TOKEN", "SECRETS_KEY", "ALLOW_PRIVATE_DESTINATIONS", "RETENTION_DAYS"]) {
      expect(text).toContain(`${name}: `);
    }
    expect(text).toContain("MAX_PAYLOAD_BYTES: ");
  });

  test("are refused each time, not only the first", () => {
    const env = environment({ RETENTION_DAYS: "0" });
    complaint(env);
    expect(complaint(env)).toContain("RETENTION_DAYS: ");
  });
});
