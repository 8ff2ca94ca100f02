import { eventBody } from "../support/driver.ts";
import { subscribe } from "../support/relay.ts";
import type { CostPlace } from "../cost/counted-relay.ts";

interface Call {
  name: string;
  /** Makes what it needs, and gives back the one call that is measured. */
  prepare(place: CostPlace): Promise<() => Promise<void>>;
}

/** Calls of the API beside publishes that might read more of a larger ledger. */
export const CALLS: Call[] = [
  {
    name: "first publish after a change of configuration",
    async prepare(place) {
      await subscribe(place.tenant, { url: `${place.receiver.url}/changed`, type: "changed" });
      return () => post(place, eventBody("changed.none", 100).replaceAll("$N", crypto.randomUUID()));
    },
  },
  {
    name: "refused publish",
    async prepare(place) {
      await post(place, eventBody("refused.none", 100).replaceAll("$N", crypto.randomUUID()));
      return () => post(place, JSON.stringify({ type: "refused.none", source: "nobody", payload: {} }));
    },
  },
  ...[
    ["list events", "/v1/events?limit=50"],
    ["list deliveries", "/v1/deliveries?limit=50"],
    ["list dead letters", "/v1/deliveries?limit=50&status=dead_letter"],
    ["list endpoints", "/v1/endpoints?limit=50"],
    ["list subscriptions", "/v1/subscriptions?limit=50"],
    ["health of an endpoint", "/v1/endpoints/$OWN/health"],
    ["health of a filled one", "/v1/endpoints/$FILLED/health"],
    ["lane of a filled one", "/v1/endpoints/$LANE/lane"],
    ["deliveries of a filled one", "/v1/deliveries?limit=50&endpoint_id=$FILLED"],
  ].map(([name, path]): Call => ({
    name: name!,
    async prepare(place) {
      const { data } = await place.tenant.call("GET", "/v1/endpoints?limit=100");
      const own = data.find(({ name }: { name: string | null }) => !name?.startsWith("filled")).id;
      const filled = data.filter(({ name }: { name: string | null }) => name?.startsWith("filled"));
      const lane = filled.find(({ ordering_mode }: { ordering_mode: string }) => ordering_mode === "strict")?.id ?? own;
      const url = path!
        .replace("$OWN", own)
        .replace("$FILLED", filled[0]?.id ?? own)
        .replace("$LANE", lane);
      return async () => void (await place.tenant.call("GET", url));
    },
  })),
  {
    // As quarantine does, by itself.
    name: "an endpoint to a lane",
    async prepare({ tenant, receiver }) {
      const id = await subscribe(tenant, { url: `${receiver.url}/rerouted`, type: "rerouted" });
      return async () => void (await tenant.call("PATCH", `/v1/endpoints/${id}`, { ordering_mode: "strict" }));
    },
  },
];

/** Whatever it answers. */
async function post({ relay, tenant }: CostPlace, body: string): Promise<void> {
  const headers = { Authorization: `Bearer ${tenant.key}`, "Content-Type": "application/json" };
  await (await fetch(`${relay.url}/v1/events`, { method: "POST", headers, body })).text();
}
