/**
 * What differs between two copies. They share what did not change, so a comparison costs as much as
 * the change, and one look at each neighbor.
 */

import { guarded } from "./callbacks.js";

/** A value that came, went or became another. */
export interface Change<T = unknown> {
  kind: "entered" | "left" | "changed";
  /** The steps to the value: names of members and indices of elements. */
  path: string[];
  /** The value now; `undefined` if it left. */
  value: T;
  /** The value before; `undefined` if it entered. */
  old: T;
}

/** A path of steps: "players.*.hp" or ["players", "*", "hp"]. `*` is any one step. */
export type Path = string | readonly string[];

type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null;
const child = (value: unknown, step: string): unknown =>
  isTree(value) && Object.hasOwn(value, step) ? value[step] : undefined;

/** Whether two values are the same, of whatever objects. NaN is; `-0` and `0` are too. */
function isSame(one: unknown, two: unknown): boolean {
  if (one === two || (one !== one && two !== two)) return true;
  if (!isTree(one) || !isTree(two) || Array.isArray(one) !== Array.isArray(two)) return false;
  for (const name in one)
    if (!Object.hasOwn(two, name) || !isSame(one[name], two[name])) return false;
  for (const name in two) if (!Object.hasOwn(one, name)) return false;
  return true;
}

function compare(
  old: unknown,
  value: unknown,
  steps: readonly string[],
  path: string[],
  tell: (change: Change) => void,
): void {
  if (old === value) return;
  const depth = path.length, step = steps[depth];
  if (step === undefined) {
    if (isSame(old, value)) return;
    const kind = old === undefined ? "entered" : value === undefined ? "left" : "changed";
    return tell({ kind, path: path.slice(), value, old });
  }
  if (step !== "*") {
    path[depth] = step;
    compare(child(old, step), child(value, step), steps, path, tell);
  } else {
    let shared = 0;
    if (isTree(old)) {
      for (const name of Object.keys(old)) {
        const now = child(value, name);
        if (now !== undefined) shared++;
        if (now === old[name]) continue;
        path[depth] = name;
        compare(old[name], now, steps, path, tell);
      }
    }
    if (isTree(value)) {
      const names = Object.keys(value);
      if (names.length > shared) {
        for (const name of names) {
          if (child(old, name) !== undefined) continue;
          path[depth] = name;
          compare(undefined, value[name], steps, path, tell);
        }
      }
    }
  }
  path.length = depth;
}

/** Listeners to changes, by path. */
export class Changes {
  private readonly all = new Set<{ steps: string[]; listener(change: Change): void }>();
  /** Throws if no value can be at a path. */
  check?: (steps: readonly string[]) => void;

  /** Calls a function for each change at a path, and returns one that removes it. */
  on(path: Path, listener: (change: Change) => void): () => void {
    const steps = typeof path === "string" ? (path ? path.split(".") : []) : path.slice();
    this.check?.(steps);
    const own = { steps, listener };
    this.all.add(own);
    return () => void this.all.delete(own);
  }

  /** Removes all functions. */
  clear(): void {
    this.all.clear();
  }

  /**
   * The copy has changed. Before the first snapshot there is no old one, and nothing is reported.
   */
  report(old: unknown, value: unknown): void {
    if (old === null) return;
    for (const own of [...this.all]) {
      // One that is removed in a call is not called any more.
      compare(old, value, own.steps, [], (change) => {
        if (this.all.has(own)) guarded(own.listener, change);
      });
    }
  }
}
