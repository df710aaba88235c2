import { toBase64 } from "./base64.js";
import { DecodeError } from "./error.js";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const U64 = (1n << 64n) - 1n;

/** An integer of 64 bits, in its JSON form: past 2^53 − 1 it is a decimal string. */
export type Integer64 = number | string;

/** An integer in its JSON form. */
export function integer(value: bigint): Integer64 {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

/** Reads the primitive types of the format `packed`. */
export class Reader {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  at = 0;
  /** The last varint, if it was past 2^53 − 1. */
  private big = 0n;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  refuse(text: string, at = this.at): never {
    throw new DecodeError(text, at);
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  /** Refuses bytes that are left over. */
  finish(): void {
    if (this.left) this.refuse(`${this.left} bytes are left over`);
  }

  /** Advances by this many bytes, and returns where they begin. */
  skip(count: number): number {
    const { at } = this;
    if (count > this.left) this.refuse(`${count} bytes are announced, and ${this.left} remain`);
    this.at = at + count;
    return at;
  }

  take(count: number): Uint8Array {
    const at = this.skip(count);
    return this.bytes.subarray(at, at + count);
  }

  u8(): number {
    return this.bytes[this.skip(1)];
  }

  bool(): boolean {
    const value = this.u8();
    if (value > 1) this.refuse(`a bool is 0 or 1, not ${value}`, this.at - 1);
    return value === 1;
  }

  /** A varint. Past 2^53 − 1 it is rounded; `integer64` returns it exactly. */
  varint(): number {
    const { bytes, at } = this;
    const first = bytes[at];
    if (first < 0x80) {
      this.at = at + 1;
      return first;
    }
    let value = 0, scale = 1;
    for (let index = at; index < bytes.length; index++) {
      const byte = bytes[index], place = index - at;
      if (place === 9 && byte > 1) this.refuse("a varint has more than 64 bits", at);
      value += (byte & 0x7f) * scale;
      scale *= 128;
      if (byte < 0x80) {
        if (byte === 0 && place > 0) this.refuse("a varint is longer than it needs to be", at);
        this.at = index + 1;
        if (value > Number.MAX_SAFE_INTEGER) this.big = bigOf(bytes, at, this.at);
        return value;
      }
    }
    return this.refuse("a varint is cut off", at);
  }

  /** A varint of at most 32 bits. */
  varint32(): number {
    const { at } = this, value = this.varint();
    if (value > 0xffff_ffff) this.refuse(`${value} has more than 32 bits`, at);
    return value;
  }

  unsigned64(): Integer64 {
    const value = this.varint();
    return value > Number.MAX_SAFE_INTEGER ? this.big.toString() : value;
  }

  signed64(): Integer64 {
    const value = this.varint();
    if (value <= Number.MAX_SAFE_INTEGER) return value % 2 ? -(value + 1) / 2 : value / 2;
    return integer((this.big >> 1n) ^ -(this.big & 1n));
  }

  /** A number of elements, each of which takes a byte at least. */
  count(): number {
    const { at } = this, count = this.varint();
    if (count > this.left) this.refuse(`${count} elements in ${this.left} bytes`, at);
    return count;
  }

  /** Reads this many things. */
  many<T>(count: number, one: () => T): T[] {
    const all: T[] = [];
    for (; count > 0; count--) all.push(one());
    return all;
  }

  blob(): Uint8Array {
    return this.take(this.varint());
  }

  text(): string {
    const bytes = this.blob();
    // Most are short and ASCII.
    if (bytes.length < 24) {
      let text = "";
      for (const byte of bytes) {
        if (byte > 0x7f) return this.decode(bytes);
        text += String.fromCharCode(byte);
      }
      return text;
    }
    return this.decode(bytes);
  }

  base64(): string {
    return toBase64(this.blob());
  }

  rest(): Uint8Array {
    return this.take(this.left);
  }

  private decode(bytes: Uint8Array): string {
    try {
      return decoder.decode(bytes);
    } catch {
      return this.refuse("a text is not UTF-8", this.at - bytes.length);
    }
  }
}

function bigOf(bytes: Uint8Array, from: number, to: number): bigint {
  let value = 0n;
  for (let index = to - 1; index >= from; index--)
    value = (value << 7n) | BigInt(bytes[index] & 0x7f);
  return value & U64;
}
