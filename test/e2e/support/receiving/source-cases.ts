import { createPrivateKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import vectors from "../../../unit/core/vectors/standard-webhooks.json" with { type: "json" };

/** One request signed by a source, and what is known of the source when it is looked at. */
export interface SourceCase {
  name: string;
  keys: string[];
  endpointId: string;
  headers: Record<string, string>;
  body: Buffer;
  now: number;
  accepted: boolean;
}

const vector = vectors.v1a[0]!;
/** As if an endpoint had an id that the published `webhook-id` ends in. */
const ENDPOINT_ID = `ep_${vector.id.slice(-16)}`;

const genuine: SourceCase = {
  name: "the published vector",
  keys: [vector.public],
  endpointId: ENDPOINT_ID,
  headers: {
    "webhook-id": vector.id,
    "webhook-timestamp": String(vector.timestamp),
    "webhook-signature": vector.signature,
  },
  body: Buffer.from(vector.body),
  now: vector.timestamp,
  accepted: true,
};

const [seed, own] = [Buffer.from(vector.secret_seed_then_public_base64, "base64").subarray(0, 32), vector.public];
const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
const privateKey = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
const other = generateKeyPairSync("ed25519");
const otherPublic = `whpk_${Buffer.from(other.publicKey.export({ format: "jwk" }).x!, "base64url").toString("base64")}`;

/** A signature of whatever is given, so that it is not what a case fails by. */
function signed(key: KeyObject, id: string, timestamp: string, body: Buffer): string {
  return `v1a,${sign(null, Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]), key).toString("base64")}`;
}

type Change = Partial<Omit<SourceCase, "headers">> & { id?: string; timestamp?: string; signature?: string | null };

function changed(accepted: boolean, name: string, { id, timestamp, signature, ...rest }: Change): SourceCase {
  const headers = { ...genuine.headers };
  if (id !== undefined) headers["webhook-id"] = id;
  if (timestamp !== undefined) headers["webhook-timestamp"] = timestamp;
  if (signature === null) delete headers["webhook-signature"];
  else if (signature !== undefined) headers["webhook-signature"] = signature;
  return { ...genuine, ...rest, name, headers, accepted };
}
const refused = (name: string, change: Change) => changed(false, name, change);
const accepted = (name: string, change: Change) => changed(true, name, change);

const { id, timestamp, signature } = { ...vector, timestamp: String(vector.timestamp) };
const byOther = signed(other.privateKey, id, timestamp, genuine.body);
const bytes = Buffer.from([0xef, 0xbb, 0xbf, 0xff, 0x00]);
const elsewhere = `${id.slice(0, -16)}0000000000000000`;
const late = String(vector.timestamp - 301);

export const SOURCE_CASES: SourceCase[] = [
  genuine,
  accepted("bytes that are no text", { body: bytes, signature: signed(privateKey, id, timestamp, bytes) }),
  accepted("an empty body", { body: Buffer.alloc(0), signature: signed(privateKey, id, timestamp, Buffer.alloc(0)) }),
  accepted("five minutes old", { now: genuine.now + 300 }),
  accepted("the second of two keys is its", { keys: [otherPublic, own] }),
  accepted("the second of two signatures is its, while a key is rotated", { signature: `${byOther} ${signature}` }),
  accepted("that of the endpoint's secret stands before it", { signature: `v1,${"A".repeat(43)}= ${signature}` }),
  refused("more than five minutes old", { now: genuine.now + 301 }),
  refused("more than five minutes ahead", { now: genuine.now - 301 }),
  refused("old, and signed anew for no later moment", {
    timestamp: late,
    signature: signed(privateKey, id, late, genuine.body),
  }),
  refused("another timestamp, as fresh", { timestamp: String(vector.timestamp + 1) }),
  refused("no timestamp", { timestamp: "" }),
  refused("another id for the same endpoint", { id: `x${id}` }),
  refused("one for another endpoint, rightly signed", {
    id: elsewhere,
    signature: signed(privateKey, elsewhere, timestamp, genuine.body),
  }),
  refused("no endpoint to compare with", { endpointId: "" }),
  refused("an endpoint that is but a prefix", { endpointId: "ep_" }),
  refused("a byte of the body is changed", { body: Buffer.from(vector.body.replace("4", "5")) }),
  refused("a space follows the body", { body: Buffer.from(`${vector.body} `) }),
  refused("by another source", { signature: byOther }),
  refused("no key is known", { keys: [] }),
  refused("another source's keys", { keys: [otherPublic] }),
  refused("under the name of another version", { signature: signature.replace("v1a,", "v1,") }),
  refused("cut short", { signature: signature.slice(0, -4) }),
  refused("with something behind it", { signature: `${signature}AA` }),
  refused("an empty signature", { signature: "v1a," }),
  refused("no signature", { signature: null }),
];
