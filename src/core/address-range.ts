/**
 * Which IP addresses are of the public internet, by IANA's special-purpose registries (RFC 6890) and what clouds keep for
 * themselves. An IPv6 address is public only inside 2000::/3, the one block IANA gives out, or when it stands for a public
 * IPv4 address behind a translator.
 */

/** Prefixes nobody may be sent to, though registries call some "globally reachable". */
const PRIVATE_V4 = [
  "0.0.0.0/8", // "this network" (RFC 791)
  "10.0.0.0/8", // private (RFC 1918)
  "100.64.0.0/10", // carrier-grade NAT (RFC 6598); Alibaba's metadata is in it
  "127.0.0.0/8", // loopback (RFC 1122)
  "168.63.129.16/32", // Azure's platform, inside every virtual network
  "169.254.0.0/16", // link-local (RFC 3927); metadata of most clouds
  "172.16.0.0/12", // private (RFC 1918)
  "192.0.0.0/24", // IETF protocol assignments (RFC 6890); Oracle's metadata is in it
  "192.0.2.0/24", // documentation (RFC 5737)
  "192.88.99.0/24", // 6to4 relays, withdrawn (RFC 7526)
  "192.168.0.0/16", // private (RFC 1918)
  "198.18.0.0/15", // benchmarks (RFC 2544)
  "198.51.100.0/24", // documentation (RFC 5737)
  "203.0.113.0/24", // documentation (RFC 5737)
  "224.0.0.0/4", // multicast (RFC 5771)
  "240.0.0.0/4", // reserved (RFC 1112), and the limited broadcast
];

const PUBLIC_V6 = "2000::/3";

const PRIVATE_V6 = [
  "2001::/23", // IETF protocol assignments (RFC 2928): Teredo, benchmarks, ORCHID
  "2001:db8::/32", // documentation (RFC 3849)
  "2002::/16", // 6to4 (RFC 3056): leads to whichever IPv4 address it spells
  "3fff::/20", // documentation (RFC 9637)
];

/** The last 32 bits are an IPv4 address, which is the one that counts. */
const TRANSLATED_V6 = [
  "::ffff:0:0/96", // IPv4-mapped (RFC 4291)
  "64:ff9b::/96", // NAT64 (RFC 6052); its local-use neighbour 64:ff9b:1::/48 (RFC 8215) is not public
];

type Range = { first: bigint; last: bigint };

const privateV4 = PRIVATE_V4.map((cidr) => rangeOf(cidr));
const privateV6 = PRIVATE_V6.map((cidr) => rangeOf(cidr));
const publicV6 = rangeOf(PUBLIC_V6);
const translatedV6 = TRANSLATED_V6.map((cidr) => rangeOf(cidr));

/** Whether this is the text of an address of the public internet; what is no address at all is not. */
export function isPublicAddress(text: string): boolean {
  const v4 = parseIpv4(text);
  if (v4 !== null) return isPublicV4(v4);
  const v6 = parseIpv6(text);
  if (v6 === null) return false;
  if (translatedV6.some((range) => isWithin(v6, range))) return isPublicV4(v6 & 0xffff_ffffn);
  return isWithin(v6, publicV6) && !privateV6.some((range) => isWithin(v6, range));
}

/** Whether this is an address, public or not: four decimal parts, or IPv6 in any spelling of RFC 4291. */
export function isAddress(text: string): boolean {
  return parseIpv4(text) !== null || parseIpv6(text) !== null;
}

function isPublicV4(address: bigint): boolean {
  return !privateV4.some((range) => isWithin(address, range));
}

function isWithin(address: bigint, { first, last }: Range): boolean {
  return first <= address && address <= last;
}

function rangeOf(cidr: string): Range {
  const [text = "", length = ""] = cidr.split("/");
  const v4 = parseIpv4(text);
  const first = v4 ?? parseIpv6(text)!;
  return { first, last: first + (1n << BigInt((v4 === null ? 128 : 32) - Number(length))) - 1n };
}

/** Dotted decimal without leading zeros, which some read as octal. */
function parseIpv4(text: string): bigint | null {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return null;
  return parts.reduce((address, part) => (address << 8n) | BigInt(part), 0n);
}

function parseIpv6(text: string): bigint | null {
  // No zone: an address with one is of some link. Longer than any spelling is not looked at.
  if (text.length > 45 || !/^[0-9a-f:.]+$/i.test(text)) return null;
  const [head = "", tail, ...more] = text.split("::");
  if (more.length > 0) return null;
  const before = groupsOf(head, tail === undefined);
  const after = tail === undefined ? [] : groupsOf(tail, true);
  if (before === null || after === null) return null;
  const missing = 8 - before.length - after.length;
  // `::` stands for one group at least.
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...before, ...Array.from({ length: missing }, () => 0), ...after];
  return groups.reduce((address, group) => (address << 16n) | BigInt(group), 0n);
}

/** Groups of 16 bits; the last two may be written as IPv4 where the address ends. */
function groupsOf(text: string, isEnd: boolean): number[] | null {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [i, part] of parts.entries()) {
    if (isEnd && i === parts.length - 1 && part.includes(".")) {
      const v4 = parseIpv4(part);
      if (v4 === null) return null;
      groups.push(Number(v4 >> 16n), Number(v4 & 0xffffn));
    } else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(parseInt(part, 16));
    else return null;
  }
  return groups;
}
