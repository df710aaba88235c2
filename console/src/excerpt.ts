/** An excerpt of a recording as steps: the room after each input, which the changes make. */

import type { Change, Excerpt, Frame, Json, Position, Seat } from "./api.js";
import type { Marks } from "./tree.js";

/** The room at a position, and the inputs that led there. */
export interface Step extends Position {
  state: Json;
  view: Json;
  seats: Seat[];
  /** `null` of the first one. */
  frame: Frame | null;
}

export function stepsOf({ begin, frames }: Excerpt): Step[] {
  if (!begin) return [];
  const steps: Step[] = [{ ...begin, frame: null }];
  for (const frame of frames) {
    const last = steps.at(-1)!;
    const { input, tick, at_ms, differs, changes, view_changes: viewChanges } = frame;
    const { seats = last.seats } = frame;
    const state = applied(last.state, changes),
      view = applied(last.view, viewChanges);
    steps.push({ input, tick, at_ms, differs, state, view, seats, frame });
  }
  return steps;
}

/** The value that changes make of this one, which stays as it is. */
export const applied = (value: Json, changes: Change[]): Json =>
  changes.reduce((value, change) => changed(value, change, 0), value);

function changed(value: Json, change: Change, depth: number): Json {
  const { path, kind } = change;
  const next = change.new ?? null;
  if (depth === path.length) return next;
  const isLast = depth === path.length - 1;
  const inner = (value: Json | undefined): Json =>
    isLast ? next : changed(value ?? null, change, depth + 1);
  if (Array.isArray(value)) {
    const at = Number(path[depth]);
    if (isLast && kind === "entered") return value.toSpliced(at, 0, next);
    if (isLast && kind === "left") return value.toSpliced(at, 1);
    if (isLast && kind === "moved")
      return value.toSpliced(change.from!, 1).toSpliced(at, 0, value[change.from!] ?? null);
    return value.with(at, inner(value[at]));
  }
  const name = String(path[depth]);
  const members = typeof value === "object" && value !== null ? { ...value } : {};
  if (isLast && kind === "left") delete members[name];
  else
    Object.defineProperty(members, name, {
      value: inner(members[name]),
      configurable: true,
      enumerable: true,
      writable: true,
    });
  return members;
}

/** The places that changed, with their old values, and what holds them, for a tree. */
export function marksOf(changes: Change[]): Marks {
  const marks = new Map<string, Json | undefined>();
  for (const { path, kind, old } of changes) {
    let place = "";
    for (const step of path) {
      place += `/${step}`;
      if (!marks.has(place)) marks.set(place, undefined);
    }
    if (kind === "changed") marks.set(place, old);
  }
  return marks;
}

/** A place as a JSON pointer (RFC 6901). */
export const pointer = (path: (string | number)[]): string =>
  path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
