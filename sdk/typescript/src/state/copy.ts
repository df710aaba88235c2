/** A client's copy of a state, kept up to date by bodies in `packed`. */

import { DecodeError } from "../error.js";
import type { Type } from "../schema.js";
import { compile } from "./compile.js";
import * as hash from "./hash.js";
import { OWNED, SHARED, type Shape } from "./shape.js";
import { Walk } from "./walk.js";

export class PackedCopy {
  /** The copy: `null` before the first snapshot, and after a patch that could not be applied. */
  state: unknown = null;
  private readonly shape: Shape;
  private readonly viewer: string;

  /** @throws {DecodeError} If no state can have this type. */
  constructor(type: Type, viewer: number | string) {
    this.shape = compile(type);
    this.viewer = String(viewer);
  }

  /** Replaces the copy. If the body can't be read, the copy stays. */
  snapshot(body: Uint8Array): void {
    this.read(body, undefined);
  }

  /** Applies a patch. If it does not fit the copy, the copy is gone. */
  patch(body: Uint8Array): void {
    const before = this.state;
    if (before === null) throw new DecodeError("a patch came before a snapshot");
    this.state = null;
    this.read(body, before);
  }

  private read(body: Uint8Array, before: unknown): void {
    const walk = new Walk(body, this.viewer),
      { shape } = this;
    let state =
      before === undefined ? shape.whole(walk, SHARED) : shape.patch(walk, before, SHARED);
    // What only the viewer sees follows if bytes are left.
    if (walk.left) state = shape.patch(walk, state, OWNED);
    walk.finish();
    this.state = state;
  }

  /** The digest of the copy, as the node computes it. */
  digest(): bigint {
    this.shape.digest(this.state);
    return hash.toBigInt();
  }
}
