/**
 * `npm run seed`: beside a relay that runs, what publishing needs (a tenant with a key, a source, an endpoint with a
 * subscription), and a receiver behind that endpoint which shows what arrives until it is stopped.
 */
import { createPlayground } from "./api-caller.ts";
import { isSignedWith, startWebhookReceiver } from "./webhook-receiver.ts";

const url = `http://localhost:${process.env["PORT"] ?? 8787}`;
const operatorToken = process.env["OPERATOR_TOKEN"] ?? "dev-operator-token";

const isUp = await fetch(`${url}/health`).then(
  ({ ok }) => ok,
  () => false,
);
if (!isUp) {
  console.error(`No relay answers on ${url}. Start one with: npm start`);
  process.exit(1);
}

let secret = "";
const receiver = await startWebhookReceiver((webhook) => {
  const { headers, body } = webhook;
  const signature = isSignedWith(secret, webhook) ? "signature verified" : "SIGNATURE WRONG";
  console.log(`\n${headers["x-webhook-event-type"]}, attempt ${headers["x-webhook-attempt"]}, ${signature}\n${body}`);
  return 200;
});
const { tenantId, key, call } = await createPlayground(url, operatorToken, "playground");
const endpoint = await call("POST", "/v1/endpoints", { name: "seed", url: receiver.url });
secret = endpoint.secret;
await call("POST", "/v1/subscriptions", { endpoint_id: endpoint.id, event_type_pattern: "*" });

console.log(`Tenant ${tenantId} has a source named "orders" and endpoint ${endpoint.id}, subscribed to "*".
What arrives at ${receiver.url} is shown here. Ctrl-C stops the receiver.

In another terminal:

  export KEY=${key}

  curl ${url}/v1/events -H "Authorization: Bearer $KEY" \\
    -d '{"type": "order.created", "source": "orders", "payload": {"order": 42}}'

  curl ${url}/v1/deliveries -H "Authorization: Bearer $KEY"

  curl ${url}/v1/deliveries/DELIVERY_ID/attempts -H "Authorization: Bearer $KEY"`);
