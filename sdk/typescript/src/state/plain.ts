/** Numbers, texts and byte strings. */

import { fromBase64, utf8 } from "../base64.js";
import { type Integer64, integer } from "../reader.js";
import type { Word } from "../schema.js";
import * as hash from "./hash.js";
import { Shape } from "./shape.js";
import type { Walk } from "./walk.js";

/** Instead of a width: numbers follow one by one. */
export const ONE_BY_ONE = 65;

/** Reads numbers of `width` bits, lowest bit first. Past 53 bits they are rounded. */
export function bits(walk: Walk, count: number, width: number): number[] {
  const from = walk.skip(Math.ceil((count * width) / 8)), { bytes } = walk;
  const values: number[] = new Array(count);
  if (width <= 25) {
    const mask = 2 ** width - 1;
    for (let place = 0, bit = 0; place < count; place++, bit += width) {
      const at = from + (bit >>> 3);
      const word = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
      values[place] = (word >>> (bit & 7)) & mask;
    }
    return values;
  }
  for (let place = 0; place < count; place++)
    values[place] = Number(wideBits(bytes, from, place * width, width));
  return values;
}

function wideBits(bytes: Uint8Array, from: number, bit: number, width: number): bigint {
  let value = 0n;
  for (let at = from + ((bit + width - 1) >>> 3); at >= from + (bit >>> 3); at--) {
    value = (value << 8n) | BigInt(bytes[at]);
  }
  return BigInt.asUintN(width, value >> BigInt(bit & 7));
}

/** How wide the numbers of a column are; more than 64 if they follow one by one. */
export function width(walk: Walk): number {
  const width = walk.u8();
  if (width > ONE_BY_ONE)
    walk.refuse(`a column has the width ${width}, at most ${ONE_BY_ONE}`, walk.at - 1);
  return width;
}

/** An integer, a `bool` or a player. */
export class Int extends Shape {
  private readonly least: number;
  private readonly most: number;
  constructor(readonly word: Word) {
    super();
    const isSigned = word[0] === "i",
      bits = word === "player" ? 64 : word === "bool" ? 1 : Number(word.slice(1));
    this.least = isSigned ? -(2 ** (bits - 1)) : 0;
    this.most = 2 ** (isSigned ? bits - 1 : bits) - 1;
  }

  whole(walk: Walk): unknown {
    const { word } = this;
    if (word === "bool") return walk.bool();
    if (word === "u8") return walk.u8();
    if (word === "i8") return (walk.u8() << 24) >> 24;
    const at = walk.at, value = this.least ? walk.signed64() : walk.unsigned64();
    if (this.most < 2 ** 53 && !((value as number) >= this.least && (value as number) <= this.most))
      this.refuse(walk, value, at);
    return value;
  }

  private refuse(walk: Walk, value: unknown, at: number): never {
    return walk.refuse(`${value} is not a ${this.word}`, at);
  }

  override columns(walk: Walk, values: unknown[]): void {
    const { at } = walk, wide = width(walk), count = values.length;
    if (wide === ONE_BY_ONE) return super.columns(walk, values);
    const first = this.whole(walk) as Integer64, least = Number(first), from = walk.at;
    const above = bits(walk, count, wide);
    if (Math.abs(least) + 2 ** wide <= Number.MAX_SAFE_INTEGER) {
      for (let place = 0; place < count; place++) {
        const value = least + above[place];
        if (value > this.most) this.refuse(walk, value, at);
        values[place] = this.word === "bool" ? value === 1 : value;
      }
      return;
    }
    // 2^63 − 1 and 2^64 − 1 are rounded up.
    const most = BigInt(this.most) - (this.most > 2 ** 60 ? 1n : 0n);
    for (let place = 0; place < count; place++) {
      const value = BigInt(first) + wideBits(walk.bytes, from, place * wide, wide);
      if (value > most) this.refuse(walk, value, at);
      values[place] = integer(value);
    }
  }

  digest(value: unknown): void {
    hash.ofInteger(value as Integer64 | boolean);
  }
}

export class Float extends Shape {
  constructor(readonly isShort: boolean) {
    super();
  }

  whole(walk: Walk): number {
    const at = walk.skip(this.isShort ? 4 : 8);
    return this.isShort ? walk.view.getFloat32(at, true) : walk.view.getFloat64(at, true);
  }

  override columns(walk: Walk, values: unknown[]): void {
    const size = this.isShort ? 4 : 8, { view } = walk;
    let at = walk.skip(size * values.length);
    for (let place = 0; place < values.length; place++, at += size) {
      values[place] = this.isShort ? view.getFloat32(at, true) : view.getFloat64(at, true);
    }
  }

  digest(value: unknown): void {
    hash.ofFloat(value as number, this.isShort);
  }
}

export class Text extends Shape {
  whole(walk: Walk): string {
    return walk.text();
  }
  digest(value: unknown): void {
    hash.ofBytes(utf8(value as string));
  }
}

export class Blob extends Shape {
  whole(walk: Walk): string {
    return walk.base64();
  }
  digest(value: unknown): void {
    hash.ofBytes(fromBase64(value as string));
  }
}

/** The value of a set's element, which takes no bytes. */
export class Present extends Shape {
  whole(): boolean {
    return true;
  }
  digest(): void {
    hash.ofBytes(new Uint8Array());
  }
}

/** The type without values. */
export class Unit extends Shape {
  whole(walk: Walk): null {
    walk.zero("nothing");
    return null;
  }
  digest(): void {
    hash.ofInteger(0);
  }
}

const SHAPES: Record<string, Shape> = {
  f32: new Float(true),
  f64: new Float(false),
  text: new Text(),
  bytes: new Blob(),
  unit: new Unit(),
};

/** The shape of a type without parts. */
export const plain = (word: Word): Shape => (SHAPES[word] ??= new Int(word));
