/** Connecting and joining with callbacks. */

import { makeChannels } from "./channels.js";
import { makeConnection } from "./connection.js";
import { makeDevices } from "./device.js";
import { json } from "./formats/json.js";
import { CLIENT, SERVER } from "./messages.js";
import { packedBy } from "./formats/packed.js";
import { makeTools } from "./tools.js";
import type {
  AnyRoom,
  ConnectHow,
  Connection,
  ConnectionCallbacks,
  How,
  Room,
  RoomCallbacks,
  RoomTypes,
} from "./types.js";

/**
 * Connects to a node, and joins a room: `connect`, and its `join`, in one.
 *
 * @param roomType The room type's name at the node.
 * @param name The player's display name; may be empty.
 */
export function join<T extends RoomTypes = AnyRoom>(
  roomType: string, name: string,
  on: RoomCallbacks<T> & ConnectionCallbacks = {}, how: How<T> & ConnectHow = {},
): Room<T> {
  return connect(name, on, how).join(roomType, on, how);
}

/**
 * Connects to the host that served the page, or to `how.url`, for several rooms. If that fails, or
 * the connection is lost, the client connects again by itself. After a loss the session goes on: no
 * event is missed, and nothing is done twice.
 *
 * @param name The player's display name; may be empty.
 */
export function connect(
  name: string,
  on: ConnectionCallbacks = {},
  how: ConnectHow = {},
): Connection {
  const format = how.format === "packed" ? packedBy(CLIENT, SERVER) : json;
  return makeConnection(name, on, how, format, [makeDevices, makeChannels, makeTools]);
}
