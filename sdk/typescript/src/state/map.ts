/** Maps and sets. */

import { utf8 } from "../base64.js";
import type { Word } from "../schema.js";
import { plain } from "./plain.js";
import * as hash from "./hash.js";
import { ALL, OWNED, type Part, SHARED, Shape } from "./shape.js";
import type { Walk } from "./walk.js";

const SLOTS_MAX = 2 ** 20, GROUPS_MAX = 8;
const REMOVED = 1, DEFINED = 2, CHANGED = 4, GROUPS = 8, REPLACED = 16, FLAGS = 31;
export const TWICE = "a key occurs twice in one map";

export type Members = Record<string, unknown>;

/** Sets a member. An assignment to `__proto__` would not make one, and players choose keys. */
export function put(members: Members, name: string, value: unknown): void {
  if (name !== "__proto__") members[name] = value;
  else
    Object.defineProperty(members, name, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
}

/** A member; never an inherited property. */
export const member = (members: Members, name: string): unknown =>
  Object.hasOwn(members, name) ? members[name] : undefined;

/** Which slot has which key. The slots of a map pass on to the map that a patch makes of it. */
class Slots {
  readonly keys: (string | undefined)[] = [];
  readonly index = new Map<string, number>();

  /** Puts a key into an empty slot. Returns another slot that it was in. */
  put(slot: number, key: string): number | undefined {
    const other = this.index.get(key);
    this.index.set(key, slot);
    this.keys[slot] = key;
    return other;
  }

  /** Empties a slot, and removes the member, unless its key is in another slot. */
  displace(slot: number, members: Members): void {
    const key = this.keys[slot];
    if (key === undefined) return;
    this.keys[slot] = undefined;
    if (this.index.get(key) !== slot) return;
    this.index.delete(key);
    delete members[key];
  }

  key(walk: Walk, slot: number, at: number): string {
    return this.keys[slot] ?? walk.unknown(at);
  }
}

const slotsOf = new WeakMap<object, Slots>();

export class MapOf extends Shape {
  private readonly isByPlayer: boolean;
  constructor(private readonly key: Word, private readonly of: Shape) {
    super();
    this.isByPlayer = key === "player";
  }

  /** Reads something in an entry, whose owner is its key if that is a player. */
  private under(walk: Walk, key: string, read: () => unknown): unknown {
    if (!this.isByPlayer) return read();
    const outer = walk.owner;
    walk.owner = key;
    const value = read();
    walk.owner = outer;
    return value;
  }

  whole(walk: Walk, part: Part): Members {
    const members: Members = {}, slots = new Slots();
    walk.rising(SLOTS_MAX, (slot) => {
      const { at } = walk, key = readKey(walk, this.key);
      put(members, key, this.under(walk, key, () => this.of.whole(walk, part)));
      if (slots.put(slot, key) !== undefined) walk.refuse(TWICE, at);
    });
    slotsOf.set(members, slots);
    return members;
  }

  override patch(walk: Walk, old: unknown, part: Part): Members {
    const { at } = walk, flags = walk.u8();
    if (flags & ~FLAGS) walk.refuse(`a map's patch has the unknown flags ${flags}`, at);
    const members: Members = { ...(old as Members | undefined) };
    const slots = (old === undefined ? undefined : slotsOf.get(old as object)) ?? new Slots();
    slotsOf.set(members, slots);
    if (flags & REMOVED) {
      walk.rising(SLOTS_MAX, (slot) => slots.displace(slot, members));
    }
    if (flags & DEFINED) this.define(walk, members, slots, part);
    if (flags & CHANGED) {
      this.each(walk, members, slots, (value) => this.of.patch(walk, value, part));
    }
    if (flags & REPLACED) this.each(walk, members, slots, () => this.of.whole(walk, part));
    if (flags & GROUPS) {
      if (part === OWNED) walk.exposed(at);
      this.groups(walk, members, slots);
    }
    return members;
  }

  private define(walk: Walk, members: Members, slots: Slots, part: Part): void {
    const { at } = walk, others: number[] = [];
    walk.rising(SLOTS_MAX, (slot) => {
      const key = readKey(walk, this.key);
      const value = this.under(walk, key, () => this.of.whole(walk, part));
      slots.displace(slot, members);
      put(members, key, value);
      const other = slots.put(slot, key);
      if (other !== undefined) others.push(other);
    });
    // A key that moved is in its old slot until that is defined too.
    for (const slot of others) {
      const key = slots.keys[slot];
      if (key !== undefined && slots.index.get(key) !== slot) walk.refuse(TWICE, at);
    }
  }

  private each(
    walk: Walk,
    members: Members,
    slots: Slots,
    read: (value: unknown) => unknown,
  ): void {
    walk.rising(SLOTS_MAX, (slot) => {
      const key = slots.key(walk, slot, walk.at);
      put(members, key, this.under(walk, key, () => read(members[key])));
    });
  }

  /** Reads groups of entries that changed in the same fields. */
  private groups(walk: Walk, members: Members, slots: Slots): void {
    const { at } = walk,
      count = walk.u8();
    if (count === 0 || count > GROUPS_MAX)
      walk.refuse(`a map's patch has ${count} groups, of 1 to ${GROUPS_MAX}`, at);
    for (let group = 0; group < count; group++) {
      const keys = readSlots(walk, slots), values: unknown[] = new Array(keys.length);
      for (let place = 0; place < keys.length; place++) values[place] = members[keys[place]];
      this.of.columns(walk, values);
      for (let place = 0; place < keys.length; place++) put(members, keys[place], values[place]);
    }
  }

  /** Reads a patch of the viewer's own entry, which has a key and no slot. */
  patchOwn(walk: Walk, old: unknown): Members {
    const { at } = walk, kind = walk.kind(3);
    const key = readKey(walk, this.key), members: Members = { ...(old as Members | undefined) };
    const before = member(members, key);
    if (kind === 0) delete members[key];
    else {
      if (kind === 2 && before === undefined) walk.unknown(at);
      const read = (): unknown =>
        kind === 1 ? this.of.whole(walk, ALL) : this.of.patch(walk, before, ALL);
      put(members, key, this.under(walk, key, read));
    }
    return members;
  }

  override blank(walk: Walk): Members {
    walk.spend(1);
    return {};
  }

  digest(value: unknown): void {
    const members = value as Members, sum = new hash.Sum();
    for (const name of Object.keys(members)) {
      if (this.key === "text") hash.ofBytes(utf8(name));
      else hash.ofInteger(name);
      const high = hash.high, low = hash.low;
      hash.weight(high, low);
      const [h, l] = [hash.high, hash.low];
      this.of.digest(members[name]);
      hash.times(hash.high, hash.low, h, l);
      sum.add();
      hash.mix(high ^ hash.THERE_HIGH, low ^ hash.THERE_LOW);
      sum.add();
    }
    sum.done();
  }
}

/** Reads a key, as the name of a member. */
export function readKey(walk: Walk, key: Word): string {
  return String(plain(key).whole(walk, SHARED));
}

/** Reads a set of slots, and returns their keys. */
function readSlots(walk: Walk, slots: Slots): string[] {
  const { at } = walk, word = walk.varint(), keys: string[] = [];
  const add = (slot: number): void => {
    if (slot >= SLOTS_MAX) walk.refuse(`place ${slot} is past the end, ${SLOTS_MAX}`, at);
    keys.push(slots.key(walk, slot, at));
  };
  if (word % 2) {
    const first = walk.varint();
    for (const place of walk.marked(4 * (word - 1))) add(first + place);
    return keys;
  }
  for (let run = 0, end = 0; run < word / 2; run++) {
    const first = end + walk.varint();
    end = first + walk.varint();
    for (let slot = first; slot < end; slot++) add(slot);
  }
  return keys;
}
