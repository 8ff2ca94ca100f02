/** Reads cases from standard input, one a line, and says of each whether the page's `verify` accepts it. */
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { verify } = await import(pathToFileURL(resolve(process.argv[2])).href);

for await (const line of createInterface({ input: process.stdin })) {
  const [secret, id, timestamp, signature, body, now] = line.split("\t");
  const all = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
  const headers = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
  // The library asks the clock itself.
  Date.now = () => Number(now) * 1000;
  try {
    verify(secret, headers, Buffer.from(body, "base64"));
    console.log("accepted");
  } catch {
    console.log("refused");
  }
}
