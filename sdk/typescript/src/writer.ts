import { utf8 } from "./base64.js";
import { EncodeError } from "./error.js";

const U64_END = 1n << 64n;

/** Writes the primitive types of the format `packed`. */
export class Writer {
  private buffer = new Uint8Array(64);
  private view = new DataView(this.buffer.buffer);
  private length = 0;

  /** What was written. */
  done(): Uint8Array {
    return this.buffer.slice(0, this.length);
  }

  private room(count: number): number {
    const at = this.length, length = at + count;
    if (length > this.buffer.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.buffer.length));
      larger.set(this.buffer);
      this.buffer = larger;
      this.view = new DataView(larger.buffer);
    }
    this.length = length;
    return at;
  }

  u8(value: number): void {
    const at = this.room(1);
    this.buffer[at] = value;
  }

  raw(bytes: Uint8Array): void {
    const at = this.room(bytes.length);
    this.buffer.set(bytes, at);
  }

  f32(value: number): void {
    const at = this.room(4);
    this.view.setFloat32(at, value, true);
  }

  f64(value: number): void {
    const at = this.room(8);
    this.view.setFloat64(at, value, true);
  }

  varint(value: number | bigint): void {
    if (typeof value === "bigint" || value > Number.MAX_SAFE_INTEGER) {
      let rest = BigInt(value);
      if (rest < 0n || rest >= U64_END)
        throw new EncodeError(`${value} is not an integer of 64 bits`);
      for (; rest > 0x7fn; rest >>= 7n) this.u8(Number(rest & 0x7fn) | 0x80);
      return this.u8(Number(rest));
    }
    for (; value > 0x7f; value = Math.floor(value / 128)) this.u8((value % 128) | 0x80);
    this.u8(value);
  }

  zigzag(value: number | bigint): void {
    const big = BigInt(value);
    this.varint(BigInt.asUintN(64, (big << 1n) ^ (big >> 63n)));
  }

  blob(bytes: Uint8Array): void {
    this.varint(bytes.length);
    this.raw(bytes);
  }

  text(text: string): void {
    this.blob(utf8(text));
  }
}
