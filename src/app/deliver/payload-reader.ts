const MAX_KEPT_BYTES = 8 * 1024 * 1024;

export type PayloadReader = (ref: string, size: number) => Promise<Uint8Array | null>;

/** Reads each payload once for the deliveries that share it, and keeps the latest few megabytes. A failure is not kept. */
export function createPayloadReader(read: PayloadReader): PayloadReader {
  const kept = new Map<string, Promise<Uint8Array | null>>();
  const sizes = new Map<string, number>();
  let keptBytes = 0;
  const forget = (ref: string) => {
    if (!kept.delete(ref)) return;
    keptBytes -= sizes.get(ref) ?? 0;
    sizes.delete(ref);
  };
  return (ref, size) => {
    const known = kept.get(ref);
    if (known) return known;
    const reading = read(ref, size);
    kept.set(ref, reading);
    sizes.set(ref, size);
    keptBytes += size;
    for (const [oldest] of kept) {
      if (keptBytes <= MAX_KEPT_BYTES || kept.size === 1) break;
      forget(oldest);
    }
    // Another reading may have taken its place meanwhile.
    reading.catch(() => kept.get(ref) === reading && forget(ref));
    return reading;
  };
}
