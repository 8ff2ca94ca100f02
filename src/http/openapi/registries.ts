import { z } from "zod";

/**
 * Schemas that the document names, under `components.schemas`: of requests as they are sent, of answers as they are given. A
 * name is in one of the two only.
 */
export const REQUESTS = z.registry<{ id: string }>();
export const ANSWERS = z.registry<{ id: string }>();
