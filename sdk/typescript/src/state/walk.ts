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
    if (this.implied < 0) this.refuse("this body implies too many values that it does not send");
  }

  /** Reads a byte that selects one of some ways. */
  kind(count: number, what: string): number {
    const kind = this.u8();
    if (kind >= count)
      this.refuse(`${what} begins with a byte below ${count}, not ${kind}`, this.at - 1);
    return kind;
  }

  /** Reads the next index of a rising sequence, or −1 at its end. */
  next(last: number, end: number, what: string): number {
    const at = this.at, distance = this.varint();
    if (distance === 0) return -1;
    const next = last + distance;
    if (next >= end) this.refuse(`${what} ${next} is past the end, ${end}`, at);
    return next;
  }

  /** Reads a mask, and returns the places of its bits. */
  marked(count: number): number[] {
    const from = this.skip(Math.ceil(count / 8)), places: number[] = [];
    for (let at = from; at < this.at; at++) {
      for (let byte = this.bytes[at], place = 8 * (at - from); byte; byte >>= 1, place++) {
        if (byte & 1) places.push(place);
      }
    }
    if (places.length && places[places.length - 1] >= count) {
      this.refuse(`place ${places[places.length - 1]} is marked of ${count}`, from);
    }
    return places;
  }
}
