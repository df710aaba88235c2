/** Why a request failed, a room was left or a connection ended. */
export class PlayfieldError extends Error {
  /** A code of the protocol ("room_full"), or a room's own number. */
  readonly code: string | number;
  constructor(code: string | number, text: string) {
    super(text);
    this.name = "PlayfieldError";
    this.code = code;
  }
}

/** Bytes or JSON that are not what the protocol or the schema says. */
export class DecodeError extends Error {
  /** The byte at which it was noticed, if there are bytes. */
  readonly at: number | undefined;
  constructor(text: string, at?: number) {
    super(at === undefined ? text : `at byte ${at}: ${text}`);
    this.name = "DecodeError";
    this.at = at;
  }
}

/** A value that does not fit the type that the schema has for it. */
export class EncodeError extends Error {
  readonly code = "bad_payload";
  constructor(text: string) {
    super(text);
    this.name = "EncodeError";
  }
}

export type OutOfStepReason = "base" | "patch" | "epoch" | "older" | "snapshot" | "digest";

/**
 * Why a copy fell out of step. `reason` is one of:
 *
 * - "base": a patch starts at another version than the copy's, or does not advance it;
 * - "patch": a patch can't be applied;
 * - "epoch": a snapshot is of another room;
 * - "older": a snapshot is older than the copy;
 * - "snapshot": a snapshot can't be read;
 * - "digest": the copy's digest differs from the node's.
 */
export class OutOfStep extends Error {
  readonly reason: OutOfStepReason;
  constructor(reason: OutOfStepReason, text: string) {
    super(text);
    this.name = "OutOfStep";
    this.reason = reason;
  }
}
