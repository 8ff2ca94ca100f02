import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isAddress, isPublicAddress } from "../../../src/core/address-range.ts";

/** First and last of a block that is not public, and what lies next to it: its address if that is public, else "-". */
type Block = [what: string, before: string, first: string, last: string, behind: string];

const BLOCKS: Block[] = [
  ["this network", "-", "0.0.0.0", "0.255.255.255", "1.0.0.0"],
  ["private", "9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"],
  ["carrier-grade NAT", "100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"],
  ["loopback", "126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"],
  ["Azure's platform", "168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"],
  ["link-local", "169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"],
  ["private", "172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"],
  ["IETF protocols", "191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"],
  ["documentation", "192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"],
  ["6to4 relays", "192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"],
  ["private", "192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"],
  ["benchmarks", "198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"],
  ["documentation", "198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"],
  ["documentation", "203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"],
  ["multicast", "223.255.255.255", "224.0.0.0", "239.255.255.255", "-"],
  ["reserved, broadcast", "-", "240.0.0.0", "255.255.255.255", "-"],

  ["unspecified, loopback, IPv4-compatible", "-", "::", "::ffff:ffff", "-"],
  ["IPv4-translated", "-", "::ffff:0:0:0", "::ffff:0:ffff:ffff", "-"],
  ["NAT64, local use", "-", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "-"],
  ["discard-only", "-", "100::", "100::ffff:ffff:ffff:ffff", "-"],
  ["all before 2000::/3", "-", "64:ff9b::1:0:0", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"],
  ["Teredo", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "-"],
  ["IETF protocols", "-", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"],
  [
    "documentation",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db8::",
    "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
  ],
  ["6to4", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"],
  [
    "documentation",
    "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff::",
    "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:1000::",
  ],
  [
    "all behind 2000::/3",
    "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "4000::",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "-",
  ],
  ["segment routing", "-", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"],
  ["unique-local", "-", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"],
  ["link-local", "-", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"],
  ["site-local", "-", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"],
  ["multicast", "-", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "-"],
];

describe("the edges of what is not public", () => {
  test.each(BLOCKS)("%s: %s | %s – %s | %s", (_, before, first, last, behind) => {
    expect([first, last].map(isPublicAddress)).toEqual([false, false]);
    for (const neighbour of [before, behind].filter((text) => text !== "-")) {
      expect([neighbour, isPublicAddress(neighbour)]).toEqual([neighbour, true]);
    }
  });

  test("the blocks of IPv4 leave no other gap: one address in each /16 is as the table says", () => {
    const blocks = BLOCKS.filter(([, , first]) => !first.includes(":"));
    const toNumber = (text: string) => text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
    for (let high = 0; high < 65_536; high++) {
      const text = `${high >> 8}.${high & 255}.7.7`;
      const isInBlock = blocks.some(([, , first, last]) => {
        return toNumber(first) <= toNumber(text) && toNumber(text) <= toNumber(last);
      });
      if (isPublicAddress(text) === isInBlock) throw new Error(text);
    }
  });
});

describe("IPv4 inside IPv6", () => {
  const v4 = fc.oneof(
    fc.ipV4(),
    fc.constantFrom(...BLOCKS.flatMap(([, ...edges]) => edges).filter((text) => text.includes("."))),
  );

  test.each(["::ffff:", "64:ff9b::", "0:0:0:0:0:FFFF:", "0064:ff9b:0:0:0:0:"])(
    "%s counts as what it stands for",
    (prefix) => {
      fc.assert(
        fc.property(v4, (address) => {
          const [a, b, c, d] = address.split(".").map(Number) as [number, number, number, number];
          const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
          expect(isPublicAddress(prefix + address)).toBe(isPublicAddress(address));
          expect(isPublicAddress(prefix + hex)).toBe(isPublicAddress(address));
        }),
        { seed: 1, numRuns: 500 },
      );
    },
  );

  test.each(["::", "::ffff:0:", "64:ff9b:1::", "2002:808:808::", "2001::", "fe80::", "100::"])(
    "%s leads nowhere public, whatever it stands for",
    (prefix) => expect([`${prefix}8.8.8.8`, `${prefix}808:808`].map(isPublicAddress)).toEqual([false, false]),
  );
});

test.each([
  "8.8.8.8",
  "1.1.1.1",
  "2606:4700:4700::1111",
  "2001:4860:4860:0:0:0:0:8888",
  "2A00:1450:4001:81B::200E",
  "2600::",
  "::ffff:8.8.8.8",
])("%s is public", (text) => expect([isAddress(text), isPublicAddress(text)]).toEqual([true, true]));

test.each([
  ..." localhost example.com 1 1.1 1.1.1 1.1.1.1.1 01.1.1.1 1.1.1.01 256.1.1.1 1.1.1.-1 0x1.1.1.1 1.1.1.1. +1.1.1.1 1e0.1.1.1".split(
    " ",
  ),
  ...": ::: 1:: :1 1::2::3 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:8:: ::1:2:3:4:5:6:7:8 1:2:3:4::5:6:7:8 g:: 12345::"
    .split(" ")
    .filter((text) => text !== "1::"),
  ..."fe80::1%eth0 [::1] ::1.2.3 ::1.2.3.4.5 1.2.3.4:: ::1.2.3.4:1 ::ffff:256.1.1.1 1:2:3:4:5:6:7:1.2.3.4".split(" "),
  "8.8.8.8 ",
  "8.8.8.8\n",
  "８.8.8.8",
  "0".repeat(100_000),
])("%j is no address, so not public", (text) => {
  expect([isAddress(text), isPublicAddress(text)]).toEqual([false, false]);
});

test("every spelling of an IPv6 address is judged alike, and none throws", () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      expect(isAddress(text)).toBe(true);
      const { hostname } = new URL(`http://[${text}]/`);
      expect(isPublicAddress(hostname.slice(1, -1))).toBe(isPublicAddress(text));
    }),
    { seed: 2, numRuns: 2_000 },
  );
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."0123456789abcdef:.x%[]".split("")) }), (text) => {
      if (!isAddress(text)) expect(isPublicAddress(text)).toBe(false);
      else expect(URL.canParse(`http://${text.includes(":") ? `[${text}]` : text}/`)).toBe(true);
    }),
    { seed: 3, numRuns: 5_000 },
  );
});
