import { z } from "zod";
import type { Findings } from "../../app/find/find.ts";
import { FIND_KINDS } from "../../core/find-kinds.ts";
import { ANSWERS } from "../openapi/registries.ts";
import { DeliveryAnswer, presentDelivery } from "./delivery.ts";
import { EventAnswer, presentEvent } from "./event.ts";
import { known, time } from "./fields.ts";
import { presentTime } from "./time.ts";

const MatchAnswer = z
  .object({
    kind: known(FIND_KINDS),
    event: EventAnswer,
    deliveries: z.array(DeliveryAnswer),
    has_more_deliveries: z.boolean(),
    attempt_id: z.string().nullable(),
  })
  .register(ANSWERS, { id: "Match" });

const SearchedAnswer = z
  .object({
    kind: known(FIND_KINDS),
    among: known(["all", "failures", "successes", "open", "events"]),
    complete: z.boolean(),
    from: time.nullable(),
    until: time.nullable(),
  })
  .register(ANSWERS, { id: "Searched" });

export const FindingsAnswer = z
  .object({
    data: z.array(MatchAnswer),
    searched: z.array(SearchedAnswer),
    complete: z.boolean(),
    next_cursor: z.string().nullable(),
  })
  .register(ANSWERS, { id: "Findings" });

export function presentFindings({ matches, searched, nextCursor }: Findings): z.infer<typeof FindingsAnswer> {
  return {
    data: matches.map(({ kind, event, deliveries, hasMoreDeliveries, attemptId }) => ({
      kind,
      event: presentEvent(event),
      deliveries: deliveries.map(presentDelivery),
      has_more_deliveries: hasMoreDeliveries,
      attempt_id: attemptId,
    })),
    searched: searched.map(({ kind, among, isComplete, from, until }) => ({
      kind,
      among,
      complete: isComplete,
      from: presentTime(from),
      until: presentTime(until),
    })),
    complete: searched.every(({ isComplete }) => isComplete),
    next_cursor: nextCursor,
  };
}
