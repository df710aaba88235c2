/** Calls a callback. What it throws is reported as uncaught, and stops nothing here. */
export function guarded<Value>(work: (value: Value) => unknown, value?: Value): void {
  try {
    work(value!);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

// Callbacks have many types; each caller passes what its own takes.
export function call(on: any, name: string, ...values: unknown[]): void {
  guarded(() => on[name]?.(...values));
}

/** Functions to call, until they are removed. */
export class Listeners<Values extends unknown[]> {
  // One function may be added twice.
  private readonly all = new Set<{ listener(...values: Values): void }>();

  /** Adds a function. Returns one that removes it. */
  add(listener: (...values: Values) => void): () => void {
    const own = { listener };
    this.all.add(own);
    return () => void this.all.delete(own);
  }

  /** Removes all, even those that a call has not come to. */
  clear(): void {
    this.all.clear();
  }

  call(...values: Values): void {
    // One that is added in a call waits for the next; one that is removed is not called.
    for (const own of [...this.all])
      if (this.all.has(own)) guarded(() => own.listener(...values));
  }
}
