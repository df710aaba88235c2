/**
 * Digests of 64 bits (docs/state.md, "Digests"). A number of 64 bits is two of 32, the high and the
 * low one: BigInts are twenty times as slow. Functions leave their result in `high` and `low`.
 */

export let high = 0, low = 0;

export function set(h: number, l: number): void {
  high = h | 0;
  low = l | 0;
}

/** The product. */
export function times(ah: number, al: number, bh: number, bl: number): void {
  const a0 = al & 0xffff, a1 = al >>> 16, b0 = bl & 0xffff, b1 = bl >>> 16;
  const middle = a0 * b1 + a1 * b0 + ((a0 * b0) >>> 16);
  const carry = (middle - (middle % 65_536)) / 65_536;
  high = (a1 * b1 + carry + Math.imul(ah, bl) + Math.imul(al, bh)) | 0;
  low = Math.imul(al, bl);
}

/** The sum. */
export function plus(ah: number, al: number, bh: number, bl: number): void {
  low = (al + bl) | 0;
  high = (ah + bh + (low >>> 0 < al >>> 0 ? 1 : 0)) | 0;
}

/** The finalizer of SplitMix64. */
export function mix(h: number, l: number): void {
  times(h ^ (h >>> 30), l ^ ((l >>> 30) | (h << 2)), 0xbf58476d, 0x1ce4e5b9);
  times(high ^ (high >>> 27), low ^ ((low >>> 27) | (high << 5)), 0x94d049bb, 0x133111eb);
  [h, l] = [high, low];
  low = l ^ ((l >>> 31) | (h << 1));
  high = h ^ (h >>> 31);
}

export function ofWord(h: number, l: number): void {
  mix(h ^ 0x6e756d62, l ^ 0x65722121);
}

/** The digest of an integer, or of its decimal form; past 2^53 − 1 it is that. */
export function ofInteger(value: number | string | boolean): void {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return ofWord(Math.floor(number / 2 ** 32), number);
  const big = BigInt(value);
  ofWord(Number(BigInt.asIntN(32, big >> 32n)), Number(BigInt.asIntN(32, big)));
}

const floats = new DataView(new ArrayBuffer(8));

export function ofFloat(value: number, isShort: boolean): void {
  if (isShort) {
    floats.setFloat32(0, value);
    return ofWord(0, floats.getInt32(0));
  }
  floats.setFloat64(0, value);
  ofWord(floats.getInt32(0), floats.getInt32(4));
}

export function ofBytes(bytes: Uint8Array): void {
  const byte = (at: number): number => bytes[at] ?? 0;
  const word = (at: number): number =>
    byte(at) | (byte(at + 1) << 8) | (byte(at + 2) << 16) | (byte(at + 3) << 24);
  set(0x64696765, 0x73742121 ^ bytes.length);
  for (let at = 0; at < bytes.length; at += 8) mix(high ^ word(at + 4), low ^ word(at));
  mix(high, low);
}

/** *w*: the factor of a place, or of a key's digest. */
export function weight(h: number, l: number): void {
  times(h, l, 0x9e3779b9, 0x7f4a7c15);
  mix(high ^ 0x70696563, low ^ 0x65732121);
  low |= 1;
}

mix(0x70726573, 0x656e7421);
/** *there*. */
export const THERE_HIGH = high, THERE_LOW = low;

const weights: [number, number][] = [];

/** A sum of digests, each times the weight of its place. */
export class Sum {
  high = 0;
  low = 0;

  /** Adds the present result. */
  add(): void {
    plus(this.high, this.low, high, low);
    this.high = high;
    this.low = low;
  }

  /** Adds the present result, times the weight of a place. */
  addAt(place: number): void {
    const [h, l] = [high, low];
    if (place < 64 && !weights[place]) {
      weight(0, place);
      weights[place] = [high, low];
    }
    if (place < 64) times(h, l, ...weights[place]);
    else {
      weight(0, place);
      times(h, l, high, low);
    }
    this.add();
  }

  done(): void {
    set(this.high, this.low);
  }
}

export const toBigInt = (): bigint =>
  (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
