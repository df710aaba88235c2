/** Messages in `packed`. */

import { bytesOf, type Format } from "../format.js";
import { decode, encode, type Table } from "../messages.js";

/** The format of a client that writes and reads the messages of these tables. */
export const packedBy = (client: Table, server: Table): Format => ({
  write: (message) => encode(client, message),
  read: (data) => decode(server, bytesOf(data)),
});
