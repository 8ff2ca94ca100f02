/** The answer of a rule that can refuse: a value, or a reason tagged by `E`. Rules return it, they never throw. */
export type Result<T, E> = { ok: true; value: T } | { ok: false; error: E };

export function ok<T>(value: T): { ok: true; value: T } {
  return { ok: true, value };
}

export function refuse<E>(error: E): { ok: false; error: E } {
  return { ok: false, error };
}
