import { CreateTenantInput } from "../../../app/tenant/create-tenant.ts";
import { UpdateTenantInput } from "../../../app/tenant/update-tenant.ts";
import { TenantAnswer } from "../../present/tenant.ts";
import type { Operation } from "../operation.ts";
import { create, list, read, remove, update, type Noun } from "./shared.ts";

const TENANT: Noun = {
  path: "tenants",
  name: "Tenant",
  one: "a tenant",
  many: "Tenants",
  access: { read: "operator", write: "operator" },
  row: TenantAnswer,
};

export const tenantOperations: Operation[] = [
  create(TENANT, { schema: CreateTenantInput, example: { name: "Acme" } }),
  list(TENANT),
  read(TENANT),
  update(TENANT, { schema: UpdateTenantInput, example: { name: "Acme Ltd" } }),
  remove(TENANT, "Its keys and configuration end at once; its deliveries end as `failed` when they next come due."),
];
