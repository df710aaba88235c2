/**
 * The tables of the protocol's messages, as messages.ts reads them. Generated from crates/wire:
 * `PLAYFIELD_WRITE_TABLES=1 cargo test -p playfield-wire tables`.
 */

import type { Integer64 } from "./reader.js";

/** What a client sends about connections and rooms. */
export const ROOMS_CLIENT = `
  {0} room:u epoch:v version:v
  {1} token:b received:v rooms:*{0}
  {2} room_type:t fingerprint:v
  hello protocol:v format:8 name:t token:b resumable:o resume:?{1} schemas:*{2} redirects:o
  join request:u room:t
  create request:u room_type:t private:o code:o key:?t options:r
  join_or_create request:u room_type:t key:?t options:r
  list request:u room_type:?t filter:m limit:u
  leave request:u room:u
  request room:u request:u message:v payload:r
  send room:u message:v payload:r
  ack received:v
  resync room:u
  ping nonce:v
  pong nonce:v
  goodbye
  schema request:u room_type:t
  join_by_key request:u room_type:t key:t
`;

/** What a client sends about channels and devices. */
export const MORE_CLIENT = `
  {0} epoch:v offset:v
  subscribe request:u channel:t since:?{0} presence:o
  unsubscribe channel:v
  publish request:?u channel:t payload:r
  members request:u channel:t
  history request:u channel:t since:?{0} limit:u
  register request:u device:t metadata:m tags:*t
  report request:?u payload:r
  answer command:v error:?t payload:r
`;

/** What a node sends about connections and rooms. */
export const ROOMS_SERVER = `
  {0} room:?u messages:v
  {1} received:v lost:*{0}
  {2} id:t room_type:t key:?t players:u capacity:u locked:o metadata:m
  welcome protocol:v session:v resume:b heartbeat_ms:u max_message_bytes:u grace_ms:u resumed:?{1}
     addresses:*t
  joined request:u room:u id:t room_type:t key:?t player:v epoch:v tick_hz:u sync_hz:u fingerprint:v
     silence_ms:u grace_ms:u
  listed request:u rooms:*{2}
  left request:?u room:u code:c text:t
  reply request:u payload:r
  event room:u sequence:v version:v message:v payload:r
  snapshot room:u epoch:v version:v body:r
  patch room:u base:v advance:v body:r
  ping nonce:v
  pong nonce:v time_us:v
  error request:?u room:?u code:c text:t retry_after_ms:?u
  goodbye code:c text:t
  check room:u version:v digest:d
  schema request:?u room_type:t schema:r
  ack received:v
`;

/** What a node sends about channels and devices. */
export const MORE_SERVER = `
  {0} session:v user:?t name:t
  {1} offset:v user:?t payload:x
  subscribed request:u channel:v epoch:v offset:v recovered:o bytes:o members:v
  publication channel:v offset:v user:?t payload:r
  unsubscribed channel:v code:c text:t
  presence channel:v sequence:v joined:o session:v user:?t name:t
  published request:u offset:v
  members request:u sequence:v count:v members:*{0}
  history request:u epoch:v offset:v bytes:o publications:*{1}
  registered request:u is_new:o bytes:o
  command command:?v payload:r
`;

/** What a node sends about other nodes. */
export const NODES_SERVER = `
  redirect request:u addresses:*t reservation:t
`;

/** What a node says of a room that this client has entered. */
export interface Joined {
  /** The request that this answers. */
  readonly request: number;
  /** The room's number in this session. */
  readonly room: number;
  /** The room's id. */
  readonly id: string;
  /** The room's type. */
  readonly room_type: string;
  /** The room's key, if it has one. */
  readonly key?: string;
  /** The player's number in the room. */
  readonly player: Integer64;
  /** New for each creation of the room. */
  readonly epoch: Integer64;
  /** How often the room's simulation steps, per second. */
  readonly tick_hz: number;
  /** How often the room sends patches, per second. */
  readonly sync_hz: number;
  /** Of the room type, see `schema::fingerprint`. */
  readonly fingerprint: Integer64;
  /**
   * While the client is in the room, either end counts the connection as lost if it hears nothing
   * for so long; 0 = as long as the heartbeat allows.
   */
  readonly silence_ms: number;
  /** How long the room keeps the player's seat after the connection is lost; 0 = not at all. */
  readonly grace_ms: number;
}
