import type {
  Endpoint,
  EndpointChanges,
  EndpointWithOverrides,
  PageRequest,
  PolicyChange,
  SigningSecret,
} from "../../core/model.ts";
import type { EndpointQuotas } from "../../core/quotas.ts";
import type { SecretsKeys } from "../../core/secret-box.ts";
import type { DestinationOptions } from "../../core/url-guard.ts";
import type { Runtime } from "../runtime.ts";

export interface EndpointDeps extends Pick<Runtime, "now" | "randomBytes"> {
  destinationRules: DestinationOptions;
  secretsKeys: SecretsKeys;
  endpointQuotas: EndpointQuotas;
  endpoints: {
    /** False when the quota of the tenant is full. */
    insert(tenantId: string, endpoint: Endpoint, secret: SigningSecret, quotas: EndpointQuotas): Promise<boolean>;
    find(tenantId: string, id: string): Promise<Endpoint | null>;
    /** Under which the relay sends its own headers once more to the tenant's endpoints. */
    findHeaderPrefix(tenantId: string): Promise<string | null>;
    page(tenantId: string, request: PageRequest & { disabledAfter: number | null }): Promise<Endpoint[]>;
    /** With a `revision`, null as well when the endpoint is not as that says. */
    update(tenantId: string, id: string, changes: EndpointChanges, revision?: number): Promise<Endpoint | null>;
    findWithOverrides(tenantId: string, id: string): Promise<EndpointWithOverrides | null>;
    /** Null when the configuration is not as `change` was computed from. */
    updateWithPolicy(
      tenantId: string,
      id: string,
      changes: EndpointChanges,
      change: PolicyChange,
    ): Promise<Endpoint | null>;
    delete(tenantId: string, id: string, now: number): Promise<boolean>;
  };
  /** Pending deliveries become `failed`, `endpoint_deleted`. */
  endDeliveriesOfEndpoint(tenantId: string, endpointId: string): Promise<void>;
}

export interface SecretDeps extends Pick<Runtime, "now" | "randomBytes"> {
  secretsKeys: SecretsKeys;
  signingSecrets: {
    find(tenantId: string, endpointId: string): Promise<{ endpointRevision: number; secrets: SigningSecret[] } | null>;
    /** False when the endpoint is not as `endpointRevision` says. */
    rotate(
      tenantId: string,
      endpointId: string,
      endpointRevision: number,
      secret: SigningSecret,
      current: { id: string; activeUntil: number } | null,
    ): Promise<boolean>;
  };
}
