/**
 * The client of Playfield for browsers and Node.
 *
 * `Client` connects, joins rooms and lists them, with promises. `join` and `connect` do the same with
 * callbacks. A lost connection is restored, and the session goes on where it was. `apply`, `whole`,
 * `digest`, `PackedCopy` and `readSchema` are the parts that maintain a copy of a state, for clients
 * with a transport of their own.
 *
 * @module playfield
 */

export { type Change, type Path } from "./changes.js";
export { SUBSCRIPTIONS_MAX } from "./channels.js";
export { Client, type ClientHow } from "./client.js";
export type { Code } from "./codes.js";
export { connect, join, UNREADABLE_IN_A_ROW_MAX } from "./connection.js";
export { DecodeError, EncodeError, OutOfStep, type OutOfStepReason, PlayfieldError } from "./error.js";
export type { FormatName } from "./format.js";
export { apply, digest, patched, whole } from "./json.js";
export { UNCONFIRMED_LENGTH_MAX } from "./links.js";
export type { Integer64 } from "./reader.js";
export { UNUSABLE_IN_A_ROW_MAX } from "./room.js";
export { readSchema, type Schema } from "./schema.js";
export { PackedCopy } from "./state/copy.js";
export type * from "./types.js";
