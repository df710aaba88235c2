/** What the package and the file that nodes serve have in common. */

export { type Change, type Path } from "./changes.js";
export { SUBSCRIPTIONS_MAX } from "./channels.js";
export { Client } from "./client.js";
export type { Code } from "./codes.js";
export { UNREADABLE_IN_A_ROW_MAX } from "./connection.js";
export {
  DecodeError,
  EncodeError,
  OutOfStep,
  type OutOfStepReason,
  PlayfieldError,
} from "./error.js";
export type { FormatName } from "./format.js";
export { apply, digest, patched, whole } from "./json.js";
export { UNCONFIRMED_LENGTH_MAX } from "./links.js";
export type { Integer64 } from "./reader.js";
export { UNUSABLE_IN_A_ROW_MAX } from "./room.js";
export { type ClientHow, RoomsClient } from "./joining.js";
export type { Schema } from "./schema.js";
export type * from "./types.js";
