import { Reader } from "../reader.js";

/** How many values a body may imply without a byte for them: this, and more for each byte. */
const IMPLIED_MIN = 2 ** 16, IMPLIED_PER_BYTE = 16;

/** A walk through one body. */
export class Walk extends Reader {
  /** Whose copy it is, as a key. */
  readonly viewer: string;
  /** The key of the nearest map keyed by player. */
  owner: string | undefined;
  private implied: number;

  constructor(bytes: Uint8Array, viewer: string) {
    super(bytes);
    this.viewer = viewer;
    this.implied = IMPLIED_MIN + IMPLIED_PER_BYTE * bytes.length;
  }

  /** Bounds by the length of the body what is made without a byte for it. */
  spend(values: number): void {
    this.implied -= values;
    if (this.implied < 0) this.refuse("the body implies too many values");
  }

  /** Refuses a change of a value that is not there. */
  unknown(at: number): never {
    return this.refuse("a value was changed that this copy does not have", at);
  }

  /** Refuses a new value of which a part is missing. */
  unsent(): never {
    return this.refuse("a part of a new value was not sent");
  }

  /** Refuses a field that not everyone sees, where everyone sees it. */
  exposed(at?: number): never {
    return this.refuse("a private field was sent to everyone", at);
  }

  /** Reads the byte of what has no parts. */
  zero(what: string): void {
    if (this.u8() !== 0) this.refuse(`${what} is one byte 0`, this.at - 1);
  }

  /** Reads a byte that selects one of some ways. */
  kind(count: number): number {
    const kind = this.u8();
    if (kind >= count) this.refuse(`a kind of patch is below ${count}, not ${kind}`, this.at - 1);
    return kind;
  }

  /** Reads a rising sequence of indices below `end`. */
  rising(end: number, use: (index: number) => void): void {
    for (let index = -1; ; ) {
      const { at } = this, distance = this.varint();
      if (distance === 0) return;
      index += distance;
      if (index >= end) this.refuse(`place ${index} is past the end, ${end}`, at);
      use(index);
    }
  }

  /** Reads a mask, and returns the places of its bits. */
  marked(count: number): number[] {
    const from = this.skip(Math.ceil(count / 8)), places: number[] = [];
    for (let at = from; at < this.at; at++) {
      for (let byte = this.bytes[at], place = 8 * (at - from); byte; byte >>= 1, place++) {
        if (byte & 1) places.push(place);
      }
    }
    const last = places[places.length - 1];
    if (last >= count) this.refuse(`place ${last} is past the end, ${count}`, from);
    return places;
  }
}
