/**
 * What a client in `packed` does by the schema of a room. Nodes serve this as a file of its own,
 * `/playfield-packed.js`, which clients in `json` never load.
 */

import { EncodeError } from "./error.js";
import type { Copy, Exchange, RoomCodec } from "./links.js";
import { readSchema, type Schema, type Type } from "./schema.js";
import { decodeValue, encodeValue } from "./state/atomic.js";
import { checkWhole } from "./state/compile.js";
import { PackedCopy } from "./state/copy.js";
import { checkPath } from "./state/path.js";

/** @throws {DecodeError} If it is not the schema of a room. */
export function roomCodec(source: string): RoomCodec {
  const schema = readSchema(source), { options, messages, events } = schema;
  checkWhole(options);
  for (const { type, reply } of messages) [type, reply].forEach(checkWhole);
  for (const { type } of events) checkWhole(type);
  return {
    schema,
    options: (value) => encodeValue(options, value, "the options"),
    readOptions: (bytes) => decodeValue(options, bytes),
    checkPath: (steps) => checkPath(schema.state, steps),
    copy: (viewer): Copy => new PackedCopy(schema.state, viewer),
    exchange: exchangeBy(schema),
  };
}

function exchangeBy({ messages, events }: Schema): Exchange {
  const readBy = (all: { name: string; type: Type }[]): Exchange["event"] =>
    (number, payload) => {
      const found = all[number as number];
      if (!found) throw new Error(`the room declares no number ${number}`);
      return [found.name, decodeValue(found.type, payload as Uint8Array)];
    };
  return {
    message(name, payload) {
      const number = messages.findIndex((message) => message.name === name);
      if (number < 0) {
        const error = new EncodeError(`the room has no message ${JSON.stringify(name)}`);
        throw Object.assign(error, { code: "unknown_message" });
      }
      return {
        message: number,
        payload: encodeValue(messages[number].type, payload, `the message ${name}`),
      };
    },
    reply(name, payload) {
      const message = messages.find((message) => message.name === name)!;
      return decodeValue(message.reply, payload as Uint8Array);
    },
    sent: readBy(messages),
    event: readBy(events),
  };
}
