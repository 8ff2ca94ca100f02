import { ok, refuse, type Result } from "./result.ts";

/**
 * Which URLs the relay is willing to send to. This looks at the name only: a Worker can neither resolve a host itself nor
 * pin the address it connects to, so a public name that points at a private address is left to the platform
 * (`global_fetch_strictly_public`).
 */

export type DestinationRefusal =
  | "too_long"
  | "malformed"
  | "unsupported_scheme"
  | "https_required"
  | "userinfo"
  | "ip_literal"
  | "single_label_host"
  | "reserved_host"
  | "metadata_host"
  | "port_not_allowed"
  | "own_host";

const MESSAGES: Record<DestinationRefusal, string> = {
  too_long: "the URL is longer than 2048 characters",
  malformed: "not an absolute URL, or it holds white space, control characters or backslashes",
  unsupported_scheme: "only http and https URLs can be called",
  https_required: "the URL must use https",
  userinfo: "the URL must not carry a user name or password; use the endpoint's headers",
  ip_literal: "the host must be a name, not an IP address",
  single_label_host: "the host must be a public name with a dot",
  reserved_host: "the host is a name reserved for private networks, or one that spells out an IP address",
  metadata_host: "the host is a cloud's metadata service",
  port_not_allowed: "the port must be 443, or 1024 and above and not that of a well-known service other than HTTP",
  own_host: "the host is this relay itself",
};

const MAX_URL_LENGTH = 2048;
const MAX_HOST_LENGTH = 253;

// The URL parser drops tabs and line breaks, and reads `\` as `/`: what was checked must be what was written.
const UNSAFE_TEXT = /[^\u0021-\u007e\u00a1-\uffff]|[\s\\]/;
// The parser also takes `https:host` and `https:///host`; people do not mean them.
const ABSOLUTE = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]+)/i;
const LABEL = /^[a-z0-9_-]{1,63}$/;
// WHATWG URL's "ends in a number": such a host is an IPv4 address or nothing.
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/;

// Those of AWS, Google, Azure, Tencent and Equinix that have names. The others (Alibaba, Oracle, DigitalOcean, OpenStack, …)
// are addresses, or single labels.
const METADATA_HOSTS = [
  "instance-data.ec2.internal",
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "metadata.tencentyun.com",
  "metadata.packet.net",
  "metadata.platformequinix.com",
];

const RESERVED_SUFFIXES = [
  // RFC 6761 and 6762 (with its appendix G), 7686, 8375, 9476; `internal` by ICANN; `ipv4only.arpa` and the like by RFC 7050
  "localhost",
  "invalid",
  "alt",
  "local",
  "test",
  "onion",
  "arpa",
  "internal",
  "intranet",
  "private",
  "corp",
  "home",
  "lan",
  "localdomain",
  // public services that answer with whichever address the name spells
  "nip.io",
  "sslip.io",
  "xip.io",
  "traefik.me",
  "localtest.me",
  "lvh.me",
  "vcap.me",
  "lacolhost.com",
  "local.gd",
  "backname.io",
  // … or with another one the second time
  "1u.ms",
  "rbndr.us",
  // what clusters and clouds call their own
  "svc",
  "internal.cloudapp.net",
  "oraclevcn.com",
];

// Ports ≥ 1024 of fetch's "bad port" list (https://fetch.spec.whatwg.org/#port-blocking), and of databases, brokers,
// directories and control planes: a POST there can do harm even when the answer is not HTTP.
const SERVICE_PORTS = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
  1433, 1434, 1521, 2483, 2484, 3050, 3306, 5432, 5984, 6379, 7687, 9042, 9160, 9200, 9300, 11211, 27017, 27018, 27019,
  28015, 33060, 50000, 1883, 4222, 5222, 5269, 5671, 5672, 8883, 9092, 61616, 2181, 2375, 2376, 2377, 2379, 2380, 4369,
  6443, 10250, 10255, 1080, 1194, 3128, 3268, 3269, 3389, 5900, 5901, 5985, 5986,
]);

export type DestinationOptions = {
  /** Development and private installations: http, any host and any port. */
  allowPrivate: boolean;
  /** This relay's own hosts, `host` or `host:port`. */
  ownHosts: readonly string[];
};

/**
 * Checks a destination and gives it back in the form it is stored and called in: scheme and host in lower case, IDN as
 * punycode, no trailing dot, no default port, no fragment. Checking that form again changes nothing.
 */
export function checkDestination(
  text: string,
  options: DestinationOptions,
): Result<{ url: string }, { reason: DestinationRefusal; message: string }> {
  const parsed = parseDestination(text);
  if (!parsed.ok) return refuse({ reason: parsed.error, message: MESSAGES[parsed.error] });
  const url = parsed.value;
  const reason = options.allowPrivate ? refusePrivate(url, options.ownHosts) : refusePublic(url, options.ownHosts);
  return reason ? refuse({ reason, message: MESSAGES[reason] }) : ok({ url: url.href });
}

function parseDestination(text: string): Result<URL, DestinationRefusal> {
  if (text.length > MAX_URL_LENGTH) return refuse("too_long");
  const match = ABSOLUTE.exec(text);
  if (!match || UNSAFE_TEXT.test(text) || !text.isWellFormed()) return refuse("malformed");
  const [, scheme = "", authority = ""] = match;
  if (!/^https?$/i.test(scheme)) return refuse("unsupported_scheme");
  if (authority.includes("@")) return refuse("userinfo");

  const url = URL.parse(text);
  if (!url) return refuse("malformed");
  url.hash = "";
  url.hostname = url.hostname.replace(/\.$/, "");
  if (!isIpv6(url.hostname) && !isHostName(url.hostname)) return refuse("malformed");
  return url.href.length > MAX_URL_LENGTH ? refuse("too_long") : ok(url);
}

function refusePublic(url: URL, ownHosts: readonly string[]): DestinationRefusal | undefined {
  const { protocol, hostname } = url;
  if (protocol !== "https:") return "https_required";
  if (isIpv6(hostname) || NUMERIC_LABEL.test(hostname.split(".").at(-1) ?? "")) return "ip_literal";
  if (METADATA_HOSTS.includes(hostname)) return "metadata_host";
  if (RESERVED_SUFFIXES.some((suffix) => hostname === suffix || hostname.endsWith(`.${suffix}`)))
    return "reserved_host";
  if (!hostname.includes(".")) return "single_label_host";
  if (url.port !== "" && (Number(url.port) < 1024 || SERVICE_PORTS.has(Number(url.port)))) return "port_not_allowed";
  if (ownHosts.some((own) => parseOwnHost(own).hostname === hostname)) return "own_host";
  return undefined;
}

/** Private installations share hosts with their receivers, so here it takes the relay's port as well to be its own. */
function refusePrivate(url: URL, ownHosts: readonly string[]): DestinationRefusal | undefined {
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const isOwn = ownHosts
    .map(parseOwnHost)
    .some((own) => own.hostname === url.hostname && (own.port === null ? url.port === "" : own.port === port));
  return isOwn ? "own_host" : undefined;
}

/** A host as a setting or a request spells it, in the spelling of a URL that was checked. */
function parseOwnHost(own: string): { hostname: string; port: string | null } {
  const [, name = own, port = null] = /^(.*?)\.?(?::(\d+))?$/.exec(own) ?? [];
  return { hostname: URL.parse(`http://${name}/`)?.hostname ?? name.toLowerCase(), port };
}

function isIpv6(hostname: string): boolean {
  return hostname.startsWith("[");
}

/** Narrower than the URL parser, which lets quotes, commas and empty labels through; wider than RFC 1123 by the underscore. */
function isHostName(hostname: string): boolean {
  return hostname.length <= MAX_HOST_LENGTH && hostname.split(".").every((label) => LABEL.test(label));
}
