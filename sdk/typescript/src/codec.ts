/**
 * Where the decoder of `packed` comes from: here it is in the package. In the file that nodes
 * serve, `served.ts` takes the place of this module.
 */

import { roomCodec } from "./packed.js";

export type Packed = { roomCodec: typeof roomCodec };

/** Calls `then` with the decoder, now or once it is loaded; `fail` if it can't be. */
export function withPacked(then: (packed: Packed) => void, fail: (error: Error) => void): void {
  then({ roomCodec });
}
