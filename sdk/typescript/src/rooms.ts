/**
 * The client for rooms alone, in `packed` alone: a sixth smaller than all, since it leaves out
 * channels, devices and `json`.
 *
 * @module playfield/rooms
 */

import { makeConnection } from "./connection.js";
import { packedBy } from "./formats/packed.js";
import { type ClientHow, RoomsClient } from "./joining.js";
import { table } from "./messages.js";
import { NODES_SERVER, ROOMS_CLIENT, ROOMS_SERVER } from "./tables.js";
import type { RoomsConnection } from "./types.js";

export { type Change, type Path } from "./changes.js";
export type { Code } from "./codes.js";
export {
  DecodeError,
  EncodeError,
  OutOfStep,
  type OutOfStepReason,
  PlayfieldError,
} from "./error.js";
export type { Integer64 } from "./reader.js";
export type * from "./types.js";

const format = /* @__PURE__ */ packedBy(
  table(0x01, ROOMS_CLIENT), table(0x41, ROOMS_SERVER, 0x59, NODES_SERVER),
);

/**
 * A client, which connects at once, and again by itself; also to the nodes of a cluster that have
 * its rooms.
 *
 * @example
 * const client = new Client("wss://game.example", { name: "Ann", token });
 * const room = await client.joinOrCreate<Duel>("duel");
 */
export class Client extends RoomsClient<RoomsConnection> {
  /**
   * @param url The node: `wss://…`, `https://…`, or in a page a path at the host that served it.
   */
  constructor(url: string, { name = "", on = {}, again, ...how }: Omit<ClientHow, "format"> = {}) {
    super(makeConnection(name, on, { ...how, url }, format, []), again);
  }
}
