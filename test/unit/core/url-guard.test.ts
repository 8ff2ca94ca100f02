import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkDestination, type DestinationOptions } from "../../../src/core/url-guard.ts";

const strict: DestinationOptions = { allowPrivate: false, ownHosts: ["relay.example.com", "Relay.Workers.dev:443"] };
const open: DestinationOptions = { allowPrivate: true, ownHosts: ["localhost:8787", "relay.lan"] };

function answer(text: string, options: DestinationOptions): string {
  const result = checkDestination(text, options);
  return result.ok ? result.value.url : result.error.reason;
}

const ADDRESSES = `
  127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 017700000001 0177.0.0.1 0177.0x0.0.1
  0 0.0.0.0 0x 8.8.8.8 10.0.0.1 169.254.169.254 0xa9fea9fe 2852039166 100.64.0.1 192.168.1.1
  255.255.255.255 127.0.0.1. 2130706433. 127%2e0.0.1 %31%32%37.0.0.1 １２７.0.0.1 ①②⑦.⓪.⓪.① 127。0。0。1
  127．0．0．1 127｡0｡0｡1 𝟏𝟐𝟕.𝟎.𝟎.𝟏 0𝖝7f.1 [::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1]
  [::127.0.0.1] [fe80::1] [fd00::1] [64:ff9b::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [fec0::1]
  [ff02::1] [2606:4700::1111] [::FFFF:a9fe:a9fe]
`;

describe("public destinations", () => {
  test.each([
    ["https://example.com", "https://example.com/"],
    ["https://example.com/hooks/a?b=c", "https://example.com/hooks/a?b=c"],
    ["HTTPS://EXAMPLE.com/Path", "https://example.com/Path"],
    ["https://example.com./x", "https://example.com/x"],
    ["https://example.com:443/", "https://example.com/"],
    ["https://example.com:/", "https://example.com/"],
    ["https://example.com.:8443/", "https://example.com:8443/"],
    ["https://example.com:1024/", "https://example.com:1024/"],
    ["https://example.com:65535/", "https://example.com:65535/"],
    ["https://example.com/#top", "https://example.com/"],
    ["https://example.com/?a=b#", "https://example.com/?a=b"],
    ["https://example.com/a@b", "https://example.com/a@b"],
    ["https://example.com?to=a@b", "https://example.com/?to=a@b"],
    ["https://example.com/ü", "https://example.com/%C3%BC"],
    ["https://bücher.example/", "https://xn--bcher-kva.example/"],
    ["https://BÜCHER。example/", "https://xn--bcher-kva.example/"],
    ["https://ｅｘａｍｐｌｅ.com/", "https://example.com/"],
    ["https://exam%70le.com/", "https://example.com/"],
    ["https://my_app.example.com/", "https://my_app.example.com/"],
    ["https://0x7f.0.0.1.example.com/", "https://0x7f.0.0.1.example.com/"],
    ["https://1.2.3.4.example.com/", "https://1.2.3.4.example.com/"],
    ["https://notlocalhost.com/", "https://notlocalhost.com/"],
    ["https://mylocal.dev/", "https://mylocal.dev/"],
    ["https://internal.example.com/", "https://internal.example.com/"],
    ["https://other.workers.dev/", "https://other.workers.dev/"],
    ["https://sub.relay.example.com/", "https://sub.relay.example.com/"],
  ])("%s is called as %s", (text, url) => {
    expect(answer(text, strict)).toBe(url);
  });

  test.each(ADDRESSES.trim().split(/\s+/))("%s is refused as an address", (host) => {
    expect(answer(`https://${host}/`, strict)).toBe("ip_literal");
    expect(answer(`https://${host}:8443/`, strict)).toBe("ip_literal");
  });

  test.each([
    "1.2.3.4.5",
    "256.1.1.1",
    "foo.1",
    "foo.0x1",
    "foo.09.",
    "[::1",
    "::1",
    "[fe80::1%25eth0]",
    "[1.2.3.4]",
    "0x100000000",
  ])("%s, nearly an address, is refused", (host) => {
    expect(answer(`https://${host}/`, strict)).toBe("malformed");
  });

  test.each([
    ["http://example.com/", "https_required"],
    ["http://127.0.0.1/", "https_required"],
    ["ftp://example.com/", "unsupported_scheme"],
    ["ws://example.com/", "unsupported_scheme"],
    ["file:///etc/passwd", "malformed"],
    ["file://host/etc/passwd", "unsupported_scheme"],
    ["gopher://example.com/", "unsupported_scheme"],
    ["javascript:alert(1)", "malformed"],
    ["data:text/plain,x", "malformed"],
    ["blob:https://example.com/x", "malformed"],
    ["", "malformed"],
    ["example.com", "malformed"],
    ["//example.com/", "malformed"],
    ["/hooks", "malformed"],
    ["https:", "malformed"],
    ["https://", "malformed"],
    ["https:///", "malformed"],
    ["https:example.com", "malformed"],
    ["https:/example.com", "malformed"],
    ["https:///example.com", "malformed"],
    ["https://?x", "malformed"],
    ["https://:8443/", "malformed"],
    [" https://example.com/", "malformed"],
    ["https://example.com/ ", "malformed"],
    ["https://example.com/a b", "malformed"],
    ["https://exam\nple.com/", "malformed"],
    ["ht\ttps://example.com/", "malformed"],
    ["https://example.com/\r\nx: y", "malformed"],
    ["https://example.com/\u0000", "malformed"],
    ["https://example.com/\u007f", "malformed"],
    ["https://example.com/\u0085", "malformed"],
    ["https://example.com/\u00a0", "malformed"],
    ["https://example.com/\u2028", "malformed"],
    ["https://example.com/\ufeff", "malformed"],
    ["https://example.com/\ud800", "malformed"],
    ["https:\\\\example.com/", "malformed"],
    ["https://example.com\\@localhost/", "malformed"],
    ["https://example.com/\\a", "malformed"],
    ["https://exa%00mple.com/", "malformed"],
    ["https://exam%20ple.com/", "malformed"],
    ["https://a..com/", "malformed"],
    ["https://.com/", "malformed"],
    ["https://example.com../", "malformed"],
    ["https://./", "malformed"],
    ["https://a'b.com/", "malformed"],
    ["https://a,b.com/", "malformed"],
    ["https://*.example.com/", "malformed"],
    [`https://${"a".repeat(64)}.com/`, "malformed"],
    [`https://${"a.".repeat(130)}com/`, "malformed"],
    ["https://example.com:65536/", "malformed"],
    ["https://example.com:-1/", "malformed"],
    ["https://example.com:4x/", "malformed"],
    ["https://user@example.com/", "userinfo"],
    ["https://user:pass@example.com/", "userinfo"],
    ["https://:pass@example.com/", "userinfo"],
    ["https://@example.com/", "userinfo"],
    ["https://example.com:443@evil.com/", "userinfo"],
    ["https://localhost/", "reserved_host"],
    ["https://LOCALHOST./", "reserved_host"],
    ["https://%6cocalhost/", "reserved_host"],
    ["https://ⓛocalhost/", "reserved_host"],
    ["https://api.localhost/", "reserved_host"],
    ["https://localhost.localdomain/", "reserved_host"],
    ["https://printer.local/", "reserved_host"],
    ["https://db.internal/", "reserved_host"],
    ["https://kubernetes.default.svc.cluster.local/", "reserved_host"],
    ["https://router.home.arpa/", "reserved_host"],
    ["https://ipv4only.arpa/", "reserved_host"],
    ["https://abc.onion/", "reserved_host"],
    ["https://app.test/", "reserved_host"],
    ["https://nas.lan/", "reserved_host"],
    ["https://wiki.corp/", "reserved_host"],
    ["https://127.0.0.1.nip.io/", "reserved_host"],
    ["https://x.10-0-0-1.sslip.io./", "reserved_host"],
    ["https://127.0.0.1.XIP.io/", "reserved_host"],
    ["https://metadata.google.internal/computeMetadata/v1/", "metadata_host"],
    ["https://metadata.google.internal./", "metadata_host"],
    ["https://metadata.goog/", "metadata_host"],
    ["https://com/", "single_label_host"],
    ["https://com./", "single_label_host"],
    ["https://kubernetes/", "single_label_host"],
    ["https://relay.example.com/v1/events", "own_host"],
    ["https://relay.example.com.:8443/", "own_host"],
    ["https://RELAY.workers.DEV/", "own_host"],
  ])("%j is refused: %s", (text, reason) => {
    expect(answer(text, strict)).toBe(reason);
  });

  test.each([
    0, 1, 22, 25, 80, 442, 444, 1023, 1433, 1521, 2049, 2375, 2376, 3306, 3389, 5432, 5900, 5984, 6379, 6667, 9200,
    11211, 27017,
  ])("port %i is refused", (port) => {
    expect(answer(`https://example.com:${port}/`, strict)).toBe("port_not_allowed");
  });

  test.each([2053, 2083, 2087, 2096, 3000, 4000, 5000, 8000, 8080, 8443, 8888, 9443])("port %i is allowed", (port) => {
    expect(answer(`https://example.com:${port}/`, strict)).toBe(`https://example.com:${port}/`);
  });

  test("length counts as given and as called", () => {
    const base = "https://example.com/";
    expect(answer(base + "a".repeat(2048 - base.length), strict)).toHaveLength(2048);
    expect(answer(base + "a".repeat(2049 - base.length), strict)).toBe("too_long");
    expect(answer(base + "ü".repeat(400), strict)).toBe("too_long");
    expect(answer(`${base}#${"a".repeat(2048)}`, strict)).toBe("too_long");
  });
});

describe("private destinations, where allowed", () => {
  test.each([
    ["http://localhost:3000/hook#x", "http://localhost:3000/hook"],
    ["http://localhost.:3000/", "http://localhost:3000/"],
    ["http://127.0.0.1:9200/", "http://127.0.0.1:9200/"],
    ["http://2130706433/", "http://127.0.0.1/"],
    ["http://[::1]:3000/", "http://[::1]:3000/"],
    ["https://receiver/", "https://receiver/"],
    ["http://host.docker.internal:22/", "http://host.docker.internal:22/"],
    ["http://localhost:8788/", "http://localhost:8788/"],
    ["http://relay.lan:8080/", "http://relay.lan:8080/"],
  ])("%s is called as %s", (text, url) => {
    expect(answer(text, open)).toBe(url);
  });

  test.each([
    ["http://u:p@localhost/", "userinfo"],
    ["http://local\thost/", "malformed"],
    ["http://localhost\\x/", "malformed"],
    ["ftp://localhost/", "unsupported_scheme"],
    [`http://localhost/${"a".repeat(2048)}`, "too_long"],
    ["http://LOCALHOST:8787/v1/events", "own_host"],
    ["http://localhost.:8787/", "own_host"],
    ["http://relay.lan/", "own_host"],
    ["http://relay.lan:80/", "own_host"],
    ["https://relay.lan/", "own_host"],
  ])("%j is refused: %s", (text, reason) => {
    expect(answer(text, open)).toBe(reason);
  });
});

test("an accepted URL is in its final form: checking it again gives it back", () => {
  const nearlyUrl = fc
    .tuple(
      fc.constantFrom("https://", "HTTPS://", "http://"),
      fc.oneof(
        fc.domain(),
        fc.ipV4Extended(),
        fc.ipV6().map((ip) => `[${ip}]`),
        fc.string({ unit: "grapheme", maxLength: 12 }),
      ),
      fc.constantFrom("", ".", ":8443", ".:8443", ":443"),
      fc.oneof(
        fc.webPath(),
        fc.string({ unit: "grapheme" }).map((text) => `/${text}`),
      ),
      fc.constantFrom("", "#f"),
    )
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(nearlyUrl, fc.constantFrom(strict, open), (text, options) => {
      const result = checkDestination(text, options);
      if (!result.ok) return;
      const { url } = result.value;
      expect(checkDestination(url, options)).toEqual(result);
      expect(url).toMatch(/^[!-~]+$/);
      expect(url).not.toContain("#");
      const { hostname, protocol } = new URL(url);
      if (!options.allowPrivate)
        expect(`${protocol}//${hostname}`).toMatch(
          /^https:\/\/[a-z0-9_-]+(\.[a-z0-9_-]+)*\.[a-z0-9-]*[a-z][a-z0-9-]*$/,
        );
    }),
    { seed: 1, numRuns: 2000 },
  );
});
