/** The object of a payload reference `<object key>#<offset>`, and the offset in it. */
export function splitPayloadRef(ref: string): [objectKey: string, offset: number] {
  const hash = ref.lastIndexOf("#");
  return [ref.slice(0, hash), Number(ref.slice(hash + 1))];
}
