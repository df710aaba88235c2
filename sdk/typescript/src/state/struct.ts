/** Structs, and their fields that not everyone sees. */

import * as hash from "./hash.js";
import { MapOf, type Members } from "./map.js";
import { ALL, column, type Part, SHARED, Shape } from "./shape.js";
import type { Walk } from "./walk.js";

/** Who sees a field, and how it is written. */
export type Access = "open" | "owner" | "own entry" | "viewed map" | "viewed";

export interface FieldShape {
  name: string;
  access: Access;
  of: Shape;
  /** If not everyone sees it: the digest of its default, which counts as nothing. */
  default: [number, number];
}

/** Instead of the sections of a map with a view: all entries follow. */
const WHOLE_MAP = 0x80;

export class Struct extends Shape {
  private readonly open: FieldShape[];
  private readonly isPrivate: boolean;
  constructor(private readonly fields: FieldShape[]) {
    super();
    this.open = fields.filter(({ access }) => access === "open");
    this.isPrivate = this.open.length < fields.length;
  }

  whole(walk: Walk, part: Part): Members {
    const value: Members = {};
    for (const { name, of } of this.open) value[name] = of.whole(walk, part);
    if (this.isPrivate) this.imply(walk, value);
    if (!this.open.length) walk.zero("a struct without fields");
    if (part === ALL && this.isPrivate)
      this.patchFields(walk, value, walk.marked(this.fields.length), ALL, false);
    return value;
  }

  override patch(walk: Walk, old: unknown, part: Part): Members {
    const marked = walk.marked(this.fields.length);
    const value = old === undefined ? this.unsent(walk, marked) : { ...(old as Members) };
    this.patchFields(walk, value, marked, part, true);
    return value;
  }

  /** Reads the marked fields: first open ones, then the others. */
  private patchFields(
    walk: Walk,
    value: Members,
    marked: number[],
    part: Part,
    hasOpen: boolean,
  ): void {
    const { fields } = this;
    let hasPrivate = false;
    for (const place of marked) {
      const { name, access, of } = fields[place];
      if (access !== "open") hasPrivate = true;
      else if (!hasOpen) walk.refuse("a field is not allowed here");
      else value[name] = of.patch(walk, value[name], part);
    }
    if (!hasPrivate) return;
    if (part === SHARED) walk.exposed();
    for (const place of marked) {
      const field = fields[place];
      if (field.access === "open") continue;
      const now = patchPrivate(walk, field, value[field.name]);
      if (now === undefined) delete value[field.name];
      else value[field.name] = now;
    }
  }

  /** A new struct whose marked fields are about to be read. */
  private unsent(walk: Walk, marked: number[]): Members {
    const value: Members = {};
    this.fields.forEach(({ name, access, of }, place) => {
      if (access !== "open") return;
      // Members are in the order of the fields.
      value[name] = undefined;
      if (marked.includes(place)) return;
      value[name] = of.blank(walk);
      if (value[name] === undefined) walk.unsent();
    });
    if (this.isPrivate) this.imply(walk, value);
    return value;
  }

  /** Adds the private fields that no body has sent yet. */
  private imply(walk: Walk, value: Members): void {
    for (const { name, access, of } of this.fields) {
      if (access === "own entry" || access === "viewed map") {
        walk.spend(1);
        value[name] = {};
      } else if (access === "owner" && walk.owner === walk.viewer) {
        const blank = of.blank(walk);
        if (blank !== undefined) value[name] = blank;
      }
    }
  }

  override columns(walk: Walk, values: unknown[]): void {
    const { at } = walk, marked = walk.marked(this.fields.length);
    for (let place = 0; place < values.length; place++)
      values[place] = { ...(values[place] as Members) };
    for (const mark of marked) {
      const { name, access, of } = this.fields[mark];
      if (access !== "open") walk.exposed(at);
      column(walk, of, values, name);
    }
  }

  override blank(walk: Walk): unknown {
    walk.spend(1);
    const value: Members = {};
    for (const { name, access, of } of this.fields) {
      const isMap = access === "own entry" || access === "viewed map";
      const blank = isMap ? {} : access === "viewed" ? undefined : of.blank(walk);
      if (blank !== undefined) value[name] = blank;
      else if (access === "open") return undefined;
    }
    return value;
  }

  digest(value: unknown): void {
    const members = value as Members, sum = new hash.Sum();
    this.fields.forEach(({ name, access, of, default: [high, low] }, place) => {
      if (members[name] === undefined) return;
      of.digest(members[name]);
      if (access === "open" || hash.high !== high || hash.low !== low) sum.addAt(place);
    });
    sum.done();
  }
}

/** Reads a patch of a private field. Returns nothing if it is no longer seen. */
function patchPrivate(walk: Walk, { access, of }: FieldShape, old: unknown): unknown {
  if (access === "own entry") return (of as MapOf).patchOwn(walk, old);
  if (access === "viewed map" && walk.bytes[walk.at] === WHOLE_MAP) {
    walk.at += 1;
    return of.whole(walk, ALL);
  }
  if (access !== "viewed") return of.patch(walk, old, ALL);
  const { at } = walk, kind = walk.kind(4);
  if (kind === 0) return undefined;
  if (kind !== 2) return of.whole(walk, ALL);
  if (old === undefined) walk.unknown(at);
  return of.patch(walk, old, ALL);
}
