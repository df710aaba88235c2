/** In the file that nodes serve, the decoder of `packed` is loaded when it is needed. */

import { fromBase64, toBase64, utf8 } from "./src/base64.js";
import type { Packed } from "./src/codec.js";
import { DecodeError, EncodeError } from "./src/error.js";
import { integer, Reader } from "./src/reader.js";
import { Writer } from "./src/writer.js";

/** What the other file uses of this one: there is one class of each error. */
const shared = { DecodeError, EncodeError, Reader, Writer, fromBase64, integer, toBase64, utf8 };

let loaded: Packed | undefined, loading: Promise<void> | undefined;

export function withPacked(then: (packed: Packed) => void, fail: (error: Error) => void): void {
  if (loaded) return then(loaded);
  loading ??= (async () => {
    // @ts-ignore: it is beside the file that this becomes a part of.
    const file = await import("./playfield-packed.js");
    loaded = file.default(shared);
  })();
  loading.then(() => then(loaded!), (error) => {
    loading = undefined;
    fail(new Error(`playfield-packed.js can't be loaded: ${error.message}`));
  });
}
