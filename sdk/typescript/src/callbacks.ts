/** Calls a callback. What it throws is reported as uncaught, and stops nothing here. */
export function guarded(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    uncaught(error);
  }
}

const uncaught = (error: unknown): void =>
  queueMicrotask(() => {
    throw error;
  });

// Callbacks have many types; each caller passes what its own takes.
export function call(on: any, name: string, ...values: unknown[]): void {
  guarded(() => on[name]?.(...values));
}

/** What each set of callbacks was last told: those of a room and its connection may be the same. */
const told = new WeakMap<object, string>();

/** Calls `status` with how things stand, unless it knows. */
export function tell(on: object, text: string): void {
  if (told.get(on) === text) return;
  told.set(on, text);
  call(on, "status", text);
}

/** Functions to call, until they are removed. */
export class Listeners<Values extends unknown[]> {
  // Never changed, so that a function that adds or removes one disturbs no call.
  private all: readonly { listener: (...values: Values) => void; isOn: boolean }[] = [];

  /** Adds a function. Returns one that removes it. */
  add(listener: (...values: Values) => void): () => void {
    // One function may be added twice.
    const own = { listener, isOn: true };
    this.all = [...this.all, own];
    return () => {
      own.isOn = false;
      this.all = this.all.filter((other) => other !== own);
    };
  }

  /** Removes all, even those that a call has not come to. */
  clear(): void {
    for (const own of this.all) own.isOn = false;
    this.all = [];
  }

  call(...values: Values): void {
    for (const own of this.all) {
      try {
        if (own.isOn) own.listener(...values);
      } catch (error) {
        uncaught(error);
      }
    }
  }
}
