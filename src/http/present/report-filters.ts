import { z } from "zod";
import type { FilterCosts, FilterGroup } from "../../app/report/filters.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { id } from "./fields.ts";
import { reportOf } from "./report.ts";

const FilterCostAnswer = z
  .object({
    count: z.int(),
    p50: z.number().nullable(),
    p95: z.number().nullable(),
    p99: z.number().nullable(),
    max: z.number().nullable(),
  })
  .register(ANSWERS, { id: "FilterCost" });

const FilterGroupAnswer = z
  .object({
    subscription_id: id("sub"),
    endpoint_id: id("ep"),
    filter_match_steps: FilterCostAnswer,
    filter_match_ms: FilterCostAnswer,
  })
  .register(ANSWERS, { id: "FilterGroup" });

export const FiltersAnswer = reportOf("Filters", FilterGroupAnswer, { groups: z.int() });

export function presentFilterGroup(group: FilterGroup): z.infer<typeof FilterGroupAnswer> {
  return {
    subscription_id: group.subscriptionId,
    endpoint_id: group.endpointId,
    filter_match_steps: present(group.steps),
    filter_match_ms: present(group.ms),
  };
}

const present = ({ count, p50, p95, p99, max }: FilterCosts) => ({ count, p50, p95, p99, max });
