/** Characters as Unicode counts them: one beyond U+FFFF is a pair of UTF-16 units. A surrogate alone counts. */
export function countCodePoints(text: string): number {
  let pairs = 0;
  for (let i = 1; i < text.length; i++) {
    // After a pair the unit that ends it begins none.
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) pairs++;
  }
  return text.length - pairs;
}
