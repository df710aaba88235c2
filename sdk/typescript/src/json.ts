/** A copy that is kept up to date by operations in `json` (docs/state.md). */

import type { Members } from "./state/map.js";

/** The most steps of a path, as in the other clients. */
const PATH_STEPS_MAX = 128;

/**
 * The most elements that one patch may move to make or fill a gap in arrays: some tenths of a
 * second of work. A node sends a whole array long before that.
 */
const MOVED_MAX = 2 ** 30;

type Tree = unknown;

/**
 * Applies a patch's operations to a copy of a room's state.
 *
 * @param state The copy, which is changed.
 * @param ops The operations: the member `ops` of a patch.
 * @throws {Error} If an operation does not fit the copy. The copy is then half changed: discard it.
 */
export function apply(state: Tree, ops: unknown): void {
  edit(state, ops, (value) => value);
}

/**
 * The copy after a patch. The copy before it stays as it is; the two share what did not change.
 *
 * @throws {Error} If an operation does not fit the copy.
 */
export function patched(state: Tree, ops: unknown): Tree {
  const own = new Set<Tree>();
  return edit(state, ops, (value) => {
    if (typeof value !== "object" || value === null || own.has(value)) return value;
    const copy = Array.isArray(value) ? value.slice() : { ...value };
    own.add(copy);
    return copy;
  });
}

/** Applies operations. `own` returns what may be changed in place of a value. */
function edit(state: Tree, ops: unknown, own: (value: Tree) => Tree): Tree {
  if (!Array.isArray(ops)) throw new Error("a patch is not a list of operations");
  const root = own(state);
  let moved = 0;
  for (const op of ops) {
    if (!Array.isArray(op)) {
      throw new Error(`a patch has the operation ${JSON.stringify(op)}, which is not a list`);
    }
    const [path, ...rest] = op;
    if (!Array.isArray(path) || path.length < 1 || path.length > PATH_STEPS_MAX) {
      throw new Error(`a patch has an operation without a path of 1 to ${PATH_STEPS_MAX} steps`);
    }
    let at = root;
    for (const step of path.slice(0, -1)) at = enter(at, step, own);
    const last = path[path.length - 1];
    if (Array.isArray(at) && rest.length !== 1 && (moved += at.length) > MOVED_MAX) {
      throw new Error(`a patch moves more than ${MOVED_MAX} elements of arrays`);
    }
    if (rest.length === 2) change(at, last, rest[0], rest[1], own);
    else if (rest.length === 1) set(at, last, rest[0]);
    else if (rest.length > 2) throw new Error("a patch has an operation of more than three parts");
    else if (Array.isArray(at)) at.splice(index(last, at.length), 1);
    else delete object(at, last)[last];
  }
  return root;
}

/**
 * The state that a snapshot's operations make: the first sets the whole, the rest change it.
 *
 * @param ops The operations: the member `ops` of a snapshot.
 * @throws {Error} If they are invalid.
 */
export function whole(ops: unknown): Members {
  const [first, ...own] = Array.isArray(ops) ? ops : [];
  const setsWhole = Array.isArray(first) && first.length === 2 && Array.isArray(first[0]);
  const state = setsWhole && first[0].length === 0 ? first[1] : null;
  if (typeof state !== "object" || state === null || Array.isArray(state)) {
    throw new Error("a snapshot has no state");
  }
  apply(state, own);
  return state;
}

function change(
  at: Tree,
  last: unknown,
  value: unknown,
  word: unknown,
  own: (value: Tree) => Tree,
): void {
  if (word === "order") {
    const list = enter(at, last, own);
    const isOrder = Array.isArray(list) && Array.isArray(value) && value.length === list.length;
    if (!isOrder || new Set(value).size !== list.length) {
      throw new Error(`a patch has an invalid order of the elements of ${JSON.stringify(last)}`);
    }
    const old = list.slice();
    value.forEach((from, to) => (list[to] = old[index(from, old.length)]));
  } else if (!Array.isArray(at)) {
    throw new Error(`a patch has the operation "${word}" for a value that is not an array`);
  } else if (word === "insert") {
    at.splice(index(last, at.length + 1), 0, value);
  } else if (word === "move") {
    at.splice(index(value, at.length), 0, ...at.splice(index(last, at.length), 1));
  } else {
    throw new Error(`a patch has the unknown operation "${word}"`);
  }
}

/** The value at a step, which may be changed from here on. */
function enter(at: Tree, step: unknown, own: (value: Tree) => Tree): Tree {
  const old = within(at, step), value = own(old);
  if (value !== old) set(at, step, value);
  return value;
}

/** The value at a step: a member or element of the copy itself, never an inherited property. */
function within(at: Tree, step: unknown): Tree {
  if (Array.isArray(at)) return at[index(step, at.length)];
  const members = object(at, step);
  if (!Object.hasOwn(members, step as string)) {
    throw new Error(`a patch names ${JSON.stringify(step)}, which does not exist`);
  }
  return members[step as string];
}

function index(step: unknown, length: number): number {
  if (Number.isInteger(step) && (step as number) >= 0 && (step as number) < length)
    return step as number;
  throw new Error(`a patch has the index ${JSON.stringify(step)} in an array of ${length}`);
}

function object(at: Tree, name: unknown): Members {
  if (typeof at === "object" && at !== null && typeof name === "string") return at as Members;
  throw new Error(`a patch names the member ${JSON.stringify(name)} of a value without members`);
}

function set(at: Tree, last: unknown, value: unknown): void {
  if (Array.isArray(at)) at[index(last, at.length)] = value;
  else {
    // An assignment to `__proto__` would not make a member, and players may choose a map's keys.
    const member = { value, writable: true, enumerable: true, configurable: true };
    Object.defineProperty(object(at, last), last as string, member);
  }
}

const float = new DataView(new ArrayBuffer(8));

const mix = (value: number): number => {
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
};
const digestOfText = (seed: number, text: string): number => {
  for (let place = 0; place < text.length; place++) {
    seed = Math.imul(seed ^ text.charCodeAt(place), 0x01000193);
  }
  return mix(seed);
};
const digestOfNumber = (number: number): number => {
  float.setFloat64(0, number + 0); // -0 counts as 0
  return mix(mix(0x6e756d62 ^ float.getInt32(4)) ^ float.getInt32(0));
};
const inside = (place: number, step: number): number => (mix(place ^ step) + place) | 0;

/**
 * The digest of a copy in `json` (docs/state.md), to compare with the digest of a `check`. It is
 * the sum over all values, each hashed with its place.
 *
 * @returns An unsigned integer of 32 bits.
 */
export function digest(value: Tree, place = 0x726f6f74): number {
  let sum = 0, what;
  if (value === null) what = 0x6e756c6c;
  else if (typeof value === "number") what = digestOfNumber(value);
  else if (typeof value === "string") what = digestOfText(0x74657874, value);
  else if (typeof value === "boolean") what = value ? 0x74727565 : 0x66616c73;
  else if (Array.isArray(value)) {
    value.forEach((element, index) => {
      sum = (sum + digest(element, inside(place, mix(0x656c656d ^ index)))) | 0;
    });
    what = mix(0x61727261 ^ value.length);
  } else {
    for (const name of Object.keys(value as object)) {
      sum =
        (sum + digest((value as Members)[name], inside(place, digestOfText(0x6d656d62, name)))) | 0;
    }
    what = 0x6f626a65;
  }
  return (sum + mix(place ^ what)) >>> 0;
}

/** A client's copy of a state, kept up to date by bodies in `json`. */
export class JsonCopy {
  /** The copy: `null` before the first snapshot. */
  state: unknown = null;

  snapshot(ops: unknown): void {
    this.state = whole(ops);
  }

  patch(ops: unknown): void {
    this.state = patched(this.state, ops);
  }

  digest(): number {
    return digest(this.state);
  }
}
