import { createHmac } from "node:crypto";
import vectors from "../../../unit/core/vectors/standard-webhooks.json" with { type: "json" };

/** One request and the moment it is looked at. An empty header is one that is not there. */
export interface Case {
  name: string;
  secret: string;
  id: string;
  timestamp: string;
  signature: string;
  body: Buffer;
  now: number;
  accepted: boolean;
}

const published: Case[] = vectors.v1.map((vector) => ({
  name: `the published vector ${vector.signature}`,
  secret: vector.secret,
  id: vector.id,
  timestamp: String(vector.timestamp),
  signature: vector.signature,
  body: vector.body_hex === undefined ? Buffer.from(vector.body!) : Buffer.from(vector.body_hex, "hex"),
  now: vector.timestamp,
  accepted: true,
}));

const genuine = published[0]!;
const mac = genuine.signature.slice("v1,".length);
const otherMac = published[1]!.signature.slice("v1,".length);

const refused = (name: string, change: Partial<Case>): Case => ({ ...genuine, name, ...change, accepted: false });
const accepted = (name: string, change: Partial<Case>): Case => ({ ...genuine, name, ...change });

/** Signs whatever it is given, so that the signature is not what a case fails by. */
function signed(key: Buffer, { id, body }: Case, timestamp: string): string {
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}
const key = Buffer.from(genuine.secret.slice("whsec_".length), "base64");

export const CASES: Case[] = [
  ...published,
  refused("a byte of the body is changed", { body: Buffer.from(genuine.body.toString().replace("4", "5")) }),
  refused("a space follows the body", { body: Buffer.concat([genuine.body, Buffer.from(" ")]) }),
  refused("another id", { id: `${genuine.id}x` }),
  refused("another timestamp, as fresh", { timestamp: String(genuine.now + 1) }),
  refused("another secret", { secret: published[1]!.secret }),
  accepted("five minutes old", { now: genuine.now + 300 }),
  refused("more than five minutes old", { now: genuine.now + 301 }),
  accepted("five minutes ahead", { now: genuine.now - 300 }),
  refused("more than five minutes ahead", { now: genuine.now - 301 }),
  accepted("the second signature is ours", { signature: `v1,${otherMac} ${genuine.signature}` }),
  accepted("the first of two is ours", { signature: `${genuine.signature} v1,${otherMac}` }),
  accepted("a signature of another kind stands before ours", { signature: `v1a,${otherMac} ${genuine.signature}` }),
  refused("two signatures by others", { signature: `v1,${otherMac} v1,${otherMac}` }),
  refused("ours under the name of another version", { signature: `v2,${mac}` }),
  refused("ours without its version", { signature: mac }),
  refused("ours cut short", { signature: genuine.signature.slice(0, -4) }),
  refused("ours with something behind it", { signature: `${genuine.signature}AA` }),
  refused("an empty signature", { signature: "v1," }),
  refused("a version only", { signature: "v1" }),
  refused("a signature that is not ASCII", { signature: "v1,é" }),
  refused("no signature", { signature: "" }),
  refused("no id", { id: "" }),
  refused("no timestamp", { timestamp: "" }),
  refused("a timestamp that is no number, rightly signed", {
    timestamp: "soon",
    signature: signed(key, genuine, "soon"),
  }),
  refused("an empty secret, and a signature by it", {
    secret: "whsec_",
    signature: signed(Buffer.alloc(0), genuine, genuine.timestamp),
  }),
];

export function toLine({ secret, id, timestamp, signature, body, now }: Case): string {
  return `${[secret, id, timestamp, signature, body.toString("base64"), now].join("\t")}\n`;
}
