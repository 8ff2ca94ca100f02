import { createRandom } from "../../../support/random.ts";

/** A number in [0, 1) that is always the same for a seed and a text, whatever was asked before. */
export function randomOf(seed: number, text: string): number {
  let hash = seed >>> 0;
  for (const character of text) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return createRandom(hash)();
}

/** A whole number in [from, to). */
export const wholeNumber = (random: () => number, from: number, to: number) =>
  from + Math.floor(random() * (to - from));
