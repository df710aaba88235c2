import type { Walk } from "./walk.js";

/** Which part of a body is read (docs/state.md, "Bodies in `packed`"). */
export const SHARED = 0, OWNED = 1, ALL = 2;
export type Part = typeof SHARED | typeof OWNED | typeof ALL;

/** Reads a change of one member of each of these objects, and replaces it. */
export function column(walk: Walk, of: Shape, objects: unknown[], name: string | number): void {
  const members = objects as Record<string | number, unknown>[], { length } = members;
  const values: unknown[] = new Array(length);
  for (let place = 0; place < length; place++) values[place] = members[place][name];
  of.columns(walk, values);
  for (let place = 0; place < length; place++) members[place][name] = values[place];
}

/** A type, compiled for reading. Values are never changed: a patch returns another value. */
export abstract class Shape {
  /** Reads a whole value. */
  abstract whole(walk: Walk, part: Part): unknown;

  /** Reads a patch. Without `old` the value is new, and everything in it counts as changed. */
  patch(walk: Walk, old: unknown, part: Part): unknown {
    return this.whole(walk, part);
  }

  /** Reads a change of each of these values, and replaces them. */
  columns(walk: Walk, values: unknown[]): void {
    for (let place = 0; place < values.length; place++) {
      values[place] = this.patch(walk, values[place], SHARED);
    }
  }

  /** What a copy has for a visible value that no body has sent; nothing if it can't be empty. */
  blank(walk: Walk): unknown {
    walk.spend(1);
    return undefined;
  }

  /** Computes the digest of a value (hash.ts). */
  abstract digest(value: unknown): void;
}
