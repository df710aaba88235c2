/** Options, arrays and lists. */

import * as hash from "./hash.js";
import { column, type Part, Shape } from "./shape.js";
import type { Walk } from "./walk.js";

export class Option extends Shape {
  constructor(private readonly of: Shape) {
    super();
  }

  whole(walk: Walk, part: Part): unknown {
    return walk.bool() ? this.of.whole(walk, part) : null;
  }

  override patch(walk: Walk, old: unknown, part: Part): unknown {
    const { at } = walk, kind = walk.kind(3);
    if (kind === 0) return null;
    if (kind === 1) return this.of.whole(walk, part);
    if (old === null || old === undefined) walk.unknown(at);
    return this.of.patch(walk, old, part);
  }

  digest(value: unknown): void {
    if (value === null) return hash.set(0, 0);
    const sum = new hash.Sum();
    this.of.digest(value);
    sum.addAt(0);
    hash.set(hash.THERE_HIGH, hash.THERE_LOW);
    sum.add();
    sum.done();
  }
}

export class ArrayOf extends Shape {
  constructor(private readonly of: Shape, private readonly length: number) {
    super();
  }

  whole(walk: Walk, part: Part): unknown[] {
    return walk.many(this.length, () => this.of.whole(walk, part));
  }

  override patch(walk: Walk, old: unknown, part: Part): unknown[] {
    const { length } = this, marked = walk.marked(length);
    const items = old === undefined ? this.unsent(walk, marked) : (old as unknown[]).slice();
    for (const place of marked) items[place] = this.of.patch(walk, items[place], part);
    return items;
  }

  /** The items of a new array, of which some are about to be read. */
  private unsent(walk: Walk, marked: number[]): unknown[] {
    const items: unknown[] = [];
    for (let place = 0, next = 0; place < this.length; place++) {
      const isMarked = marked[next] === place;
      const item = isMarked ? undefined : this.of.blank(walk);
      if (isMarked) next++;
      else if (item === undefined) walk.unsent();
      items.push(item);
    }
    return items;
  }

  override columns(walk: Walk, values: unknown[]): void {
    const marked = walk.marked(this.length);
    for (let at = 0; at < values.length; at++) values[at] = (values[at] as unknown[]).slice();
    for (const place of marked) column(walk, this.of, values, place);
  }

  override blank(walk: Walk): unknown {
    walk.spend(1);
    const items: unknown[] = [];
    for (let place = 0; place < this.length; place++) {
      const item = this.of.blank(walk);
      if (item === undefined) return undefined;
      items.push(item);
    }
    return items;
  }

  digest(value: unknown): void {
    sumOf(value as unknown[], this.of).done();
  }
}

function sumOf(items: unknown[], of: Shape): hash.Sum {
  const sum = new hash.Sum();
  items.forEach((item, place) => {
    of.digest(item);
    sum.addAt(place);
  });
  return sum;
}

const LIST_OPS_MAX = 1024;
/** The place of an element that was inserted and has not been read. */
const INSERTED = Symbol();

export class List extends Shape {
  constructor(private readonly of: Shape) {
    super();
  }

  whole(walk: Walk, part: Part): unknown[] {
    return walk.many(walk.count(), () => this.of.whole(walk, part));
  }

  override patch(walk: Walk, old: unknown, part: Part): unknown[] {
    const kind = walk.kind(3);
    if (kind === 0) return this.whole(walk, part);
    const before = (old ?? []) as unknown[];
    const items = kind === 2 ? reshaped(walk, before) : before.slice();
    walk.rising(items.length, (at) => {
      const item = items[at];
      items[at] = item === INSERTED ? this.of.whole(walk, part) : this.of.patch(walk, item, part);
    });
    if (kind === 2 && items.includes(INSERTED)) walk.unsent();
    return items;
  }

  digest(value: unknown): void {
    const items = value as unknown[], sum = sumOf(items, this.of);
    hash.mix(hash.THERE_HIGH, hash.THERE_LOW ^ items.length);
    sum.add();
    sum.done();
  }
}

/** Reads the operations of a list, and applies them. */
function reshaped(walk: Walk, before: unknown[]): unknown[] {
  const begin = walk.at, insertedMax = before.length + walk.left;
  let items = before.slice(), inserted = 0;
  for (let ops = 0; ; ops++) {
    const { at } = walk, word = walk.varint();
    if (word === 0) break;
    if (ops === LIST_OPS_MAX)
      walk.refuse(`a list has more than ${LIST_OPS_MAX} changes of shape`, at);
    const count = Math.floor(word / 4),
      { length } = items;
    const refuse = (): never =>
      walk.refuse(`a change of ${count} elements does not fit a list of ${length}`, at);
    if (count === 0) refuse();
    switch (word % 4) {
      case 0: {
        const index = walk.varint();
        if (index + count > length) refuse();
        items.splice(index, count);
        break;
      }
      case 1: {
        const index = walk.varint();
        if (index > length || count > insertedMax - inserted) refuse();
        inserted += count;
        items = items.slice(0, index).concat(new Array(count).fill(INSERTED), items.slice(index));
        break;
      }
      case 2: {
        const from = walk.varint(), to = walk.varint();
        if (Math.max(from, to) + count > length) refuse();
        const moved = items.splice(from, count);
        items = items.slice(0, to).concat(moved, items.slice(to));
        break;
      }
      default: {
        if (count !== length || count > walk.left) refuse();
        const old = items, taken = new Uint8Array(count);
        items = [];
        for (let place = 0; place < count; place++) {
          const from = walk.varint();
          if (from >= count || taken[from]) refuse();
          taken[from] = 1;
          items.push(old[from]);
        }
      }
    }
  }
  if (inserted > items.length) {
    walk.refuse(`${inserted} elements were inserted into a list of ${items.length}`, begin);
  }
  return items;
}
