import { makeChannels } from "./channels.js";
import { makeConnection } from "./connection.js";
import { makeDevices } from "./device.js";
import { json } from "./formats/json.js";
import { packedBy } from "./formats/packed.js";
import { type ClientHow, RoomsClient } from "./joining.js";
import { CLIENT, SERVER } from "./messages.js";
import { makeTools } from "./tools.js";
import type { Connection } from "./types.js";

/**
 * A client, which connects at once, and again by itself; also to the nodes of a cluster that have
 * its rooms. Its `connection`, the first one, is for channels and devices.
 *
 * @example
 * const client = new Client("wss://game.example", { name: "Ann", token });
 * const room = await client.joinOrCreate<Duel>("duel");
 * room.onChange("players.*", ({ kind, path, value }) => draw(kind, path[1], value));
 * const drawn = await room.request("Draw", { count: 2 }, { timeoutMs: 5000 });
 */
export class Client extends RoomsClient<Connection> {
  /**
   * @param url The node: `wss://…`, `https://…`, or in a page a path at the host that served it.
   */
  constructor(
    url: string, { name = "", on = {}, format = "packed", again, ...how }: ClientHow = {},
  ) {
    const by = format === "packed" ? packedBy(CLIENT, SERVER) : json;
    const parts = [makeDevices, makeChannels, makeTools];
    super(makeConnection(name, on, { ...how, url }, by, parts), again);
  }
}
