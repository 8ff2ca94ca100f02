/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A number in [0, 1) that is always the same for a seed and a text, whatever was asked before. */
export function randomOf(seed: number, text: string): number {
  let hash = seed >>> 0;
  for (const character of text) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  return createRandom(hash)();
}

/** A whole number in [from, to). */
export const wholeNumber = (random: () => number, from: number, to: number) =>
  from + Math.floor(random() * (to - from));
