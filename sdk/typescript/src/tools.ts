/** What tools need that show any room. */

import { withPacked } from "./codec.js";
import type { MakePart } from "./links.js";

export const makeTools: MakePart = (connection, { request }) => {
  connection.schema = async (roomType, how) => {
    const body = await request({ type: "schema", room_type: roomType }, how);
    const source = body instanceof Uint8Array ? new TextDecoder().decode(body) : body;
    return new Promise((resolve, reject) => {
      withPacked(({ roomCodec }) => {
        try {
          resolve(roomCodec(source).schema!);
        } catch (error) {
          reject(error);
        }
      }, reject);
    });
  };
  return {};
};
