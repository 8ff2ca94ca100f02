import type { DestinationOptions, DestinationRefusal } from "../../../../src/core/url-guard.ts";

const OWN_HOSTS = ["relay.example.com", "Bücher-Relay.example.", "localhost:8787", "[::1]:8787"];
export const publicOnly: DestinationOptions = { allowPrivate: false, ownHosts: OWN_HOSTS };
export const anywhere: DestinationOptions = { allowPrivate: true, ownHosts: OWN_HOSTS };

/** What is written, and what it comes to where only public destinations are allowed, and where private ones are too. */
type Row = [written: string, publicOnly: DestinationRefusal | `https://${string}`, anywhere: string];

/** All of them spell 127.0.0.1, 10.0.0.1 or 169.254.169.254 as IPv4, and are that where private destinations are allowed. */
const IPV4: Record<string, string[]> = {
  "127.0.0.1": [
    ..."127.0.0.1 127.1 127.0.1 127.0.0.1. 2130706433 2130706433. 0x7f000001 0X7F.1 0x7f.0.0.1 017700000001".split(" "),
    ..."0177.0.0.01 0177.0x0.0.1 00000177.1 127%2E0%2E0%2E1 %31%32%37.0.0.1 127%2e1 １２７.0.0.1 １２７．０．０．１".split(
      " ",
    ),
    ..."①②⑦.⓪.⓪.① 127。0。0。1 127｡0｡0｡1 𝟏𝟐𝟕.𝟎.𝟎.𝟏 𝟙𝟚𝟟.1 0𝖝7f.1 ⁰x7f.1 ₁₂₇.1 ¹²⁷.1 12\u200b7.0.0.1 127\u00ad.0.0.1".split(
      " ",
    ),
  ],
  "10.0.0.1": "10.0.0.1 10.1 167772161 0xa000001 012.0.0.1 0xA.0x0.0x0.0x1 ⑩.1 １０．１".split(" "),
  "169.254.169.254": [
    ..."169.254.169.254 169.254.43518 169.16689662 2852039166 0xa9fea9fe 0251.0376.0251.0376 0xa9.0xfe.0xa9.0xfe".split(
      " ",
    ),
    ..."169。254。169。254 ①⑥⑨.②⑤④.①⑥⑨.②⑤④ １６９.２５４.１６９.２５４ 169.254.169.254. 025177524776".split(" "),
  ],
  "100.100.100.200": "100.100.100.200 0x646464c8 1684301000 100.100.25800".split(" "),
  "192.0.0.192": "192.0.0.192 3221225664 0xc00000c0".split(" "),
  "168.63.129.16": "168.63.129.16 0xa83f8110".split(" "),
  "0.0.0.0": "0.0.0.0 0 0x 0x0 00 0.0 ⓪ ０".split(" "),
  "255.255.255.255": "255.255.255.255 4294967295 0xffffffff 037777777777".split(" "),
  "172.31.255.255": ["172.31.255.255", "172.2097151"],
  "192.168.0.1": ["192.168.0.1", "192.168.1", "0xc0a80001"],
  "100.64.0.1": ["100.64.0.1"],
  "198.18.0.1": ["198.18.0.1"],
  "192.0.2.1": ["192.0.2.1"],
  "203.0.113.1": ["203.0.113.1"],
  "224.0.0.1": ["224.0.0.1"],
  "240.0.0.1": ["240.0.0.1"],
  "8.8.8.8": ["8.8.8.8", "134744072", "8.526344"],
};

/** IPv6 literals by what they are, in the form a URL keeps them in. */
const IPV6: [kind: string, written: string, kept: string][] = [
  ["unspecified", "[::]", "[::]"],
  ["loopback", "[::1]", "[::1]"],
  ["loopback, long", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::1]"],
  ["IPv4-mapped", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"],
  ["IPv4-mapped, hex", "[::FFFF:a9fe:a9fe]", "[::ffff:a9fe:a9fe]"],
  ["IPv4-mapped, long", "[0:0:0:0:0:ffff:10.0.0.1]", "[::ffff:a00:1]"],
  ["IPv4-compatible", "[::127.0.0.1]", "[::7f00:1]"],
  ["IPv4-translated", "[::ffff:0:127.0.0.1]", "[::ffff:0:7f00:1]"],
  ["NAT64", "[64:ff9b::169.254.169.254]", "[64:ff9b::a9fe:a9fe]"],
  ["NAT64, local use", "[64:ff9b:1::7f00:1]", "[64:ff9b:1::7f00:1]"],
  ["6to4", "[2002:7f00:1::]", "[2002:7f00:1::]"],
  ["Teredo", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]"],
  ["unique-local", "[fd00:ec2::254]", "[fd00:ec2::254]"],
  ["unique-local, fc", "[fc00::1]", "[fc00::1]"],
  ["link-local", "[fe80::a9fe:a9fe]", "[fe80::a9fe:a9fe]"],
  ["site-local", "[fec0::1]", "[fec0::1]"],
  ["discard-only", "[100::1]", "[100::1]"],
  ["documentation", "[2001:db8::1]", "[2001:db8::1]"],
  ["documentation, new", "[3fff::1]", "[3fff::1]"],
  ["multicast", "[ff02::1]", "[ff02::1]"],
  ["segment routing", "[5f00::1]", "[5f00::1]"],
  ["public", "[2606:4700:4700::1111]", "[2606:4700:4700::1111]"],
];

const HOSTS: Row[] = [
  // names of metadata services
  ["metadata.google.internal", "metadata_host", "https://metadata.google.internal/"],
  ["METADATA.GOOGLE.INTERNAL.", "metadata_host", "https://metadata.google.internal/"],
  ["metadata。google。internal", "metadata_host", "https://metadata.google.internal/"],
  ["ｍetadata.goog", "metadata_host", "https://metadata.goog/"],
  ["%6detadata.goog", "metadata_host", "https://metadata.goog/"],
  ["instance-data.ec2.internal", "metadata_host", "https://instance-data.ec2.internal/"],
  ["metadata.azure.internal", "metadata_host", "https://metadata.azure.internal/"],
  ["metadata.tencentyun.com", "metadata_host", "https://metadata.tencentyun.com/"],
  ["metadata.packet.net", "metadata_host", "https://metadata.packet.net/"],
  ["metadata.platformequinix.com", "metadata_host", "https://metadata.platformequinix.com/"],
  ["metadata", "single_label_host", "https://metadata/"],
  ["instance-data", "single_label_host", "https://instance-data/"],
  ["rancher-metadata", "single_label_host", "https://rancher-metadata/"],
  // names without a dot
  ["intranet-host", "single_label_host", "https://intranet-host/"],
  ["com.", "single_label_host", "https://com/"],
  ["ai", "single_label_host", "https://ai/"],
  ["xn--bcher-kva", "single_label_host", "https://xn--bcher-kva/"],
  // names of private networks
  ["localhost", "reserved_host", "https://localhost/"],
  ["lo\u00adcalhost", "reserved_host", "https://localhost/"],
  ["loc\u200balhost", "reserved_host", "https://localhost/"],
  ["ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "reserved_host", "https://localhost/"],
  ["ｌｏｃａｌｈｏｓｔ", "reserved_host", "https://localhost/"],
  ["LOCALHOST.", "reserved_host", "https://localhost/"],
  ["foo.localhost", "reserved_host", "https://foo.localhost/"],
  ["printer.local", "reserved_host", "https://printer.local/"],
  ["api.svc", "reserved_host", "https://api.svc/"],
  ["api.default.svc.cluster.local", "reserved_host", "https://api.default.svc.cluster.local/"],
  ["vm.internal.cloudapp.net", "reserved_host", "https://vm.internal.cloudapp.net/"],
  ["db.sub.vcn.oraclevcn.com", "reserved_host", "https://db.sub.vcn.oraclevcn.com/"],
  ["ip-10-0-0-1.ec2.internal", "reserved_host", "https://ip-10-0-0-1.ec2.internal/"],
  ["1.0.0.127.in-addr.arpa", "reserved_host", "https://1.0.0.127.in-addr.arpa/"],
  ["nowhere.invalid", "reserved_host", "https://nowhere.invalid/"],
  ["a.alt", "reserved_host", "https://a.alt/"],
  // names that spell an address, or change it
  ["127.0.0.1.nip.io", "reserved_host", "https://127.0.0.1.nip.io/"],
  ["7f000001.sslip.io", "reserved_host", "https://7f000001.sslip.io/"],
  ["localtest.me", "reserved_host", "https://localtest.me/"],
  ["a.lvh.me", "reserved_host", "https://a.lvh.me/"],
  ["7f000001.c0a80001.rbndr.us", "reserved_host", "https://7f000001.c0a80001.rbndr.us/"],
  // this relay
  ["relay.example.com", "own_host", "own_host"],
  ["RELAY.example.com.", "own_host", "own_host"],
  ["ｒelay。example。com", "own_host", "own_host"],
  ["relay.example.com:443", "own_host", "own_host"],
  ["relay.example.com:8443", "own_host", "https://relay.example.com:8443/"],
  ["bücher-relay.example", "own_host", "own_host"],
  ["xn--bcher-relay-thb.example", "own_host", "own_host"],
  ["localhost:8787", "reserved_host", "own_host"],
  ["[::1]:8787", "ip_literal", "own_host"],
  ["[0:0:0:0:0:0:0:1]:8787", "ip_literal", "own_host"],
  ["localhost:8788", "reserved_host", "https://localhost:8788/"],
  // names that only look like something
  ["1.2.3.4.example.com", "https://1.2.3.4.example.com/", "https://1.2.3.4.example.com/"],
  ["127.0.0.1.example.com", "https://127.0.0.1.example.com/", "https://127.0.0.1.example.com/"],
  ["mylocalhost.com", "https://mylocalhost.com/", "https://mylocalhost.com/"],
  ["metadata.google.internal.example.com", ...twice("https://metadata.google.internal.example.com/")],
  ["relay.example.com.evil.org", ...twice("https://relay.example.com.evil.org/")],
  ["1e3.com", ...twice("https://1e3.com/")],
  // IDN, kept as punycode
  ["bücher.example", ...twice("https://xn--bcher-kva.example/")],
  ["BÜCHER.example", ...twice("https://xn--bcher-kva.example/")],
  ["bu\u0308cher.example", ...twice("https://xn--bcher-kva.example/")],
  ["例え。テスト", ...twice("https://xn--r8jz45g.xn--zckzah/")],
  ["ｅｘａｍｐｌｅ．ｃｏｍ", ...twice("https://example.com/")],
  ["аpple.com", ...twice("https://xn--pple-43d.com/")],
  // what the parser would pass over, or nobody can mean
  ["a..example.com", "malformed", "malformed"],
  [".example.com", "malformed", "malformed"],
  ["example.com..", "malformed", "malformed"],
  ["exam\tple.com", "malformed", "malformed"],
  ["exam\nple.com", "malformed", "malformed"],
  ["example.com\\.evil.org", "malformed", "malformed"],
  ["example.com\u0000", "malformed", "malformed"],
  ["exa%00mple.com", "malformed", "malformed"],
  ["exa%2fmple.com", "malformed", "malformed"],
  ["exa%40mple.com", "malformed", "malformed"],
  ["127.0.0.1%20", "malformed", "malformed"],
  ["example.com,evil.org", "malformed", "malformed"],
  ["[::1", "malformed", "malformed"],
  ["::1", "malformed", "malformed"],
  ["[fe80::1%25eth0]", "malformed", "malformed"],
  ["[::ffff:127.0.0.1.]", "malformed", "malformed"],
  ["[127.0.0.1]", "malformed", "malformed"],
  ["256.0.0.1", "malformed", "malformed"],
  ["127.0.0.0.1", "malformed", "malformed"],
  ["0x100000000", "malformed", "malformed"],
  ["1.2.3.08", "malformed", "malformed"],
  ["example.0x7f", "malformed", "malformed"],
  // user names
  ["user@example.com", "userinfo", "userinfo"],
  ["user:pass@example.com", "userinfo", "userinfo"],
  ["example.com@127.0.0.1", "userinfo", "userinfo"],
  ["example.com:443@[::1]", "userinfo", "userinfo"],
  ["@example.com", "userinfo", "userinfo"],
  // ports
  ["example.com:443", ...twice("https://example.com/")],
  ["example.com:08443", ...twice("https://example.com:8443/")],
  ["example.com:80", "port_not_allowed", "https://example.com:80/"],
  ["example.com:22", "port_not_allowed", "https://example.com:22/"],
  ["example.com:6379", "port_not_allowed", "https://example.com:6379/"],
  ["example.com:0", "port_not_allowed", "https://example.com:0/"],
  ["example.com:65536", "malformed", "malformed"],
  ["example.com:-1", "malformed", "malformed"],
  ["example.com:８４４３", "malformed", "malformed"],
];

const WHOLE: Row[] = [
  ["http://example.com/", "https_required", "http://example.com/"],
  ["HTTP://EXAMPLE.com:80/", "https_required", "http://example.com/"],
  ["http://127.0.0.1/", "https_required", "http://127.0.0.1/"],
  ["ftp://example.com/", "unsupported_scheme", "unsupported_scheme"],
  ["gopher://example.com/", "unsupported_scheme", "unsupported_scheme"],
  ["ws://example.com/", "unsupported_scheme", "unsupported_scheme"],
  ["file://localhost/etc/passwd", "unsupported_scheme", "unsupported_scheme"],
  ["file:///etc/passwd", "malformed", "malformed"],
  ["javascript:alert(1)", "malformed", "malformed"],
  ["data:,x", "malformed", "malformed"],
  ["https:example.com", "malformed", "malformed"],
  ["https:/example.com", "malformed", "malformed"],
  ["https:///example.com", "malformed", "malformed"],
  ["https:\\\\example.com", "malformed", "malformed"],
  ["//example.com", "malformed", "malformed"],
  ["example.com", "malformed", "malformed"],
  ["", "malformed", "malformed"],
  ["ｈttps://example.com/", "malformed", "malformed"],
  ["https：//example.com/", "malformed", "malformed"],
  [" https://example.com/", "malformed", "malformed"],
  ["https://example.com/\r\nX-Injected: 1", "malformed", "malformed"],
  ["https://example.com/\ud800", "malformed", "malformed"],
  ["https://example.com/\u2028", "malformed", "malformed"],
  ["https://example.com/a/../b#c", ...twice("https://example.com/b")],
  ["https://example.com/%2e%2e/b", ...twice("https://example.com/b")],
  ["https://example.com/@127.0.0.1", ...twice("https://example.com/@127.0.0.1")],
  ["https://example.com#@127.0.0.1", ...twice("https://example.com/")],
  ["https://example.com?@127.0.0.1", ...twice("https://example.com/?@127.0.0.1")],
  [`https://example.com/${"a".repeat(2028)}`, ...twice(`https://example.com/${"a".repeat(2028)}`)],
  [`https://example.com/${"a".repeat(2029)}`, "too_long", "too_long"],
  [`https://example.com/${"ä".repeat(400)}`, "too_long", "too_long"],
  [`https://${"a".repeat(63)}.com/`, ...twice(`https://${"a".repeat(63)}.com/`)],
  [`https://${"a".repeat(64)}.com/`, "malformed", "malformed"],
  [`https://${"a.".repeat(125)}com/`, ...twice(`https://${"a.".repeat(125)}com/`)],
  [`https://${"a.".repeat(126)}com/`, "malformed", "malformed"],
];

function twice(url: `https://${string}`): [publicOnly: `https://${string}`, anywhere: string] {
  return [url, url];
}

/** Every spelling with what it comes to. */
export const SPELLINGS: Row[] = [
  ...Object.entries(IPV4).flatMap(([address, spellings]) =>
    spellings.map((host): Row => [`https://${host}/`, "ip_literal", `https://${address}/`]),
  ),
  ...IPV6.map(([, host, kept]): Row => [`https://${host}/`, "ip_literal", `https://${kept}/`]),
  ...HOSTS.map(([host, ...expected]): Row => [`https://${host}/`, ...expected]),
  ...WHOLE,
];
