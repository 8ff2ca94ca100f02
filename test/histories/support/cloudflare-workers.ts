/** What the relay's objects and entrypoints are made of, outside the runtime. */
export class DurableObject<T> {
  protected readonly ctx: unknown;
  protected readonly env: T;

  constructor(ctx: unknown, env: T) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class WorkerEntrypoint<T> extends DurableObject<T> {}
